// Media in an S3 bucket, used by processes that share no folder: what is stored is there before its
// id is known, and what is deleted is gone everywhere.

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configSchema } from '../../src/kernel/config/config.ts';
import { openMediaOrigin } from '../../src/kernel/media/bucket.ts';
import { openMediaFiles } from '../../src/kernel/media/files.ts';
import type { MediaStore } from '../../src/kernel/media/media.ts';
import { type MediaId, mediaId } from '../../src/kernel/message/ids.ts';
import { mediaContract, PNG } from '../contract/media.ts';
import { createMovableClock, type MovableClock } from '../support/movable-clock.ts';
import {
  S3_BUCKET,
  S3_KEY,
  S3_REGION,
  S3_SECRET,
  type S3Server,
  startS3,
} from '../support/s3-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const LIMITS = { maxBytes: 1_000_000 };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const UNAVAILABLE = expect.objectContaining({ code: 'media_unavailable' });

let root = '';
let clock: MovableClock;
let s3: S3Server;
let needed = new Set<MediaId>();
beforeEach(async () => {
  root = await temporaryFolder();
  clock = createMovableClock();
  s3 = await startS3(() => clock.now());
  needed = new Set();
});
afterEach(() => s3[Symbol.asyncDispose]());

type Changes = { readonly bucket?: string; readonly maxBytes?: number; readonly former?: string };

/** Of one process, whose folder has this name. */
async function open(name: string, { bucket = S3_BUCKET, ...changes }: Changes = {}) {
  const where = { kind: 's3' as const, bucket, prefix: 'media', endpoint: s3.endpoint };
  const keys = { region: S3_REGION, accessKeyId: S3_KEY, secretAccessKey: S3_SECRET };
  const config = configSchema.parse({ storage: { media: { ...where, ...keys } } });
  const { maxBytes = 1_000_000, ...former } = changes;
  return openMediaFiles({
    ...{ folder: join(root, name), clock, maxBytes: () => maxBytes, ...former },
    needed: async () => needed,
    origin: await openMediaOrigin(config, { env: {}, clock }),
  });
}

const copies = async (name: string) =>
  (await readdir(join(root, name), { recursive: true })).filter((path) =>
    /\/[0-9a-f]{64}$/.test(path),
  );
const readBy = async (store: MediaStore, id: MediaId) => {
  const content = await store.read(id);
  return content === undefined ? undefined : Buffer.from(content).toString();
};

mediaContract('in a bucket', async (moved) => {
  clock = moved;
  return open('one');
});

describe('media in a bucket', () => {
  it('are read by a process that has another folder, as they were stored', async () => {
    const stored = await (await open('one')).put(PNG, LIMITS);
    expect([...s3.objects.keys()]).toEqual([`media/${stored.id.slice(0, 2)}/${stored.id}`]);
    const other = await open('two');
    expect(await other.stat(stored.id)).toEqual(stored);
    const read = await Promise.all([1, 2, 3].map(() => other.read(stored.id)));
    for (const content of read) expect(Buffer.from(content ?? [])).toEqual(PNG);
    expect(await copies('two')).toHaveLength(1);
  });

  it('are not stored while the service is away; what is there as a copy is still read', async () => {
    const one = await open('one');
    const { id } = await one.put(Buffer.from('before'), LIMITS);
    const come = await s3.vanish();
    await clock.advance(2 * HOUR_MS);
    const [put, here, there] = await Promise.allSettled([
      one.put(Buffer.from('during'), LIMITS),
      readBy(one, id),
      readBy(await open('one'), mediaId('f'.repeat(64))),
    ]);
    expect(put).toMatchObject({ reason: UNAVAILABLE });
    expect(here).toMatchObject({ value: 'before' });
    expect(there).toMatchObject({ reason: UNAVAILABLE });
    expect(await copies('one')).toHaveLength(1);
    await come();
    expect(await one.put(Buffer.from('during'), LIMITS)).toMatchObject({ sizeBytes: 6 });
  }, 30_000);

  it('deleted by one process are gone for the others within an hour, and from their folders', async () => {
    const one = await open('one');
    const two = await open('two');
    const read = await one.put(Buffer.from('read again'), LIMITS);
    const unread = await one.put(Buffer.from('not read again'), LIMITS);
    for (const { id } of [read, unread]) expect(await readBy(two, id)).toBeDefined();
    expect([await one.remove(read.id), await one.remove(unread.id)]).toEqual([true, true]);
    expect(s3.objects.size).toBe(0);
    await clock.advance(HOUR_MS + 1);
    expect(await readBy(two, read.id)).toBeUndefined();
    expect(await copies('two')).toHaveLength(1);
    await two.trim();
    expect(await copies('two')).toEqual([]);
  });

  it('that a waiting message needs are not deleted', async () => {
    const store = await open('one');
    const { id } = await store.put(Buffer.from('needed'), LIMITS);
    needed.add(id);
    await clock.advance(100 * DAY_MS);
    expect(await store.remove(id)).toBe(false);
    expect(await store.sweep(DAY_MS)).toBe(0);
    needed.delete(id);
    expect(await store.sweep(DAY_MS)).toBe(6);
    expect(s3.objects.size).toBe(0);
  });

  it('keep the time of their last use, and no object of others in the bucket is touched', async () => {
    s3.objects.set('media/other', { content: Buffer.from('other'), at: new Date(0) });
    s3.objects.set('elsewhere', { content: Buffer.from('other'), at: new Date(0) });
    const store = await open('one');
    const { id } = await store.put(Buffer.from('used'), LIMITS);
    await clock.advance(20 * DAY_MS);
    await store.put(Buffer.from('used'), LIMITS);
    await clock.advance(20 * DAY_MS);
    expect(await store.sweep(30 * DAY_MS)).toBe(0);
    expect(await readBy(store, id)).toBe('used');
    await clock.advance(20 * DAY_MS);
    expect(await store.sweep(30 * DAY_MS)).toBe(0);
    expect(s3.objects.size).toBe(3);
  });

  it('have no more copies in a folder than fit, and are fetched again', async () => {
    const store = await open('one', { maxBytes: 250 });
    const ids: MediaId[] = [];
    for (const text of ['a', 'b', 'c', 'd']) {
      ids.push((await store.put(Buffer.alloc(100, text), LIMITS)).id);
      await clock.advance(1000);
    }
    needed = new Set(ids);
    expect(await copies('one')).toHaveLength(2);
    for (const id of ids) expect(await store.read(id)).toHaveLength(100);
    expect(await copies('one')).toHaveLength(2);
  });

  it('get what a folder had before, and what processes shared; without a bucket they stay there', async () => {
    const shared = join(root, 'shared');
    const plain = { clock, maxBytes: () => 1_000_000, needed: async () => needed };
    const own = await (await openMediaFiles({ ...plain, folder: join(root, 'one') })).put(
      PNG,
      LIMITS,
    );
    const other = await (await openMediaFiles({ ...plain, folder: shared })).put(
      Buffer.from('shared'),
      LIMITS,
    );
    await expect(open('one', { bucket: 'no-such-bucket' })).rejects.toMatchObject({
      code: 'media_unavailable',
      message: expect.stringContaining('no bucket no-such-bucket'),
    });
    const store = await open('one', { former: shared });
    expect(await copies('shared')).toEqual([]);
    expect(s3.objects.size).toBe(2);
    await clock.advance(2 * HOUR_MS);
    await store.trim();
    expect(await copies('one')).toEqual([]);
    expect(await store.read(own.id)).toEqual(PNG);
    expect(await readBy(store, other.id)).toBe('shared');
    // A folder that stores again is no set of copies any more.
    await openMediaFiles({ ...plain, folder: join(root, 'one') });
    s3.objects.clear();
    await open('one');
    expect(s3.objects.size).toBe(2);
  });

  it('that were changed in the bucket are not taken for what was stored', async () => {
    const { id } = await (await open('one')).put(Buffer.from('original'), LIMITS);
    const key = `media/${id.slice(0, 2)}/${id}`;
    s3.objects.set(key, { content: Buffer.from('changed'), at: new Date() });
    await expect((await open('two')).read(id)).rejects.toEqual(UNAVAILABLE);
    expect(await copies('two')).toEqual([]);
  });
});

it('is not written where the signature or the checksum of a file is wrong', async () => {
  const folder = join(root, 'one', 'aa');
  await mkdir(folder, { recursive: true });
  // A file whose content is not that of its name.
  await writeFile(join(folder, 'a'.repeat(64)), 'damaged');
  await expect(open('one')).rejects.toMatchObject({
    message: expect.stringContaining('XAmzContentSHA256Mismatch'),
  });
});
