// The media in an S3 bucket, as objects named like the files of a media folder: `<2 hex>/<sha256>`.
// An object is as old as its last use, which is noted twice a day at most.

import { randomUUID } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { text } from 'node:stream/consumers';
import { type Bucket, openBucket, S3Error } from '../../lib/net/s3.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Config } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import { type MediaId, mediaId } from '../message/ids.ts';
import { MediaError, type MediaOrigin } from './media.ts';

type BucketConfig = Pick<Config, 'storage' | 'network'>;

const NOTE_USE_MS = 12 * 3_600_000;
const OBJECT = /^[0-9a-f]{2}\/([0-9a-f]{64})$/;

const keyOf = (id: MediaId) => `${id.slice(0, 2)}/${id}`;

/** @throws S3Error where credentials are missing */
const openMediaBucket = (config: BucketConfig, env: Environment): Promise<Bucket> => {
  const { bucket, prefix, ...s3 } = config.storage.media;
  const { proxy } = config.network;
  return openBucket({ bucket, prefix, s3, proxy, env, field: 'storage.media' });
};

/**
 * Writes, finds, reads and deletes an object of its own.
 * @returns the name of the bucket, with the problem where there is one; both without secrets
 */
export async function proveMediaBucket(config: BucketConfig, env: Environment) {
  let name = `s3://${config.storage.media.bucket}`;
  let step = t`open`;
  try {
    const bucket = await openMediaBucket(config, env);
    name = bucket.name;
    const key = `probe/${randomUUID()}`;
    step = t`write (s3:PutObject)`;
    await bucket.put(key, Buffer.from(key));
    step = t`list (s3:ListBucket)`;
    const found = await bucket.stat(key);
    step = t`read (s3:GetObject)`;
    const content = await bucket.get(key);
    const isSame = content !== undefined && (await text(content)) === key;
    if (found === undefined || !isSame) return { name, problem: t`what was written is not there` };
    step = t`delete (s3:DeleteObject)`;
    await bucket.remove(key);
    return { name };
  } catch (error) {
    if (!(error instanceof S3Error)) throw error;
    return { name, problem: `${step}: ${error.message}` };
  }
}

/** @throws MediaError `media_unavailable` where credentials are missing */
export async function openMediaOrigin(
  config: BucketConfig,
  { env, clock }: { readonly env: Environment; readonly clock: Clock },
): Promise<MediaOrigin> {
  const bucket = await openMediaBucket(config, env).catch(unavailable);
  const isYoung = (at: number) => clock.now() - at < NOTE_USE_MS;
  const found = (id: MediaId) => bucket.stat(keyOf(id));

  async function sweep(before: number, needed: ReadonlySet<MediaId>): Promise<number> {
    let freed = 0;
    for await (const { key, at } of bucket.list('')) {
      const [, name] = OBJECT.exec(key) ?? [];
      if (name === undefined || at >= before || needed.has(mediaId(name))) continue;
      // It may have been used since the page of the list was made.
      const now = await bucket.stat(key);
      if (now === undefined || now.at >= before) continue;
      await bucket.remove(key);
      freed += now.sizeBytes;
    }
    return freed;
  }

  const put = async (id: MediaId, path: string) =>
    bucket.put(keyOf(id), await openAsBlob(path), id);

  return {
    name: `${config.storage.media.endpoint} ${bucket.name}`.trim(),
    async keep(id, path) {
      const kept = await found(id).catch(unavailable);
      if (kept === undefined || !isYoung(kept.at)) await put(id, path).catch(unavailable);
    },
    async fetch(id) {
      const content = await bucket.get(keyOf(id)).catch(unavailable);
      return content === undefined ? undefined : whole(content);
    },
    async use(id, path) {
      const kept = await found(id).catch(unavailable);
      if (kept !== undefined && !isYoung(kept.at)) await put(id, path).catch(unavailable);
      return kept !== undefined;
    },
    remove: (id) => bucket.remove(keyOf(id)).catch(unavailable),
    sweep: (before, needed) => sweep(before, needed).catch(unavailable),
  };
}

/** The connection may break before the end. */
async function* whole(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* content;
  } catch (error) {
    unavailable(error);
  }
}

function unavailable(cause: unknown): never {
  const reason = cause instanceof Error ? cause.message : '';
  throw new MediaError('media_unavailable', `storage.media: ${reason}`, cause);
}
