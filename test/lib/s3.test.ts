// What a bucket promises, with the strict service of the tests and with s3rver, a service that
// others wrote.

import { createHash, randomBytes } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Bucket, openBucket, type S3Settings } from '../../src/lib/net/s3.ts';
import { S3_BUCKET, S3_KEY, S3_REGION, S3_SECRET, startS3 } from '../support/s3-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

type OtherServer = { run(): Promise<AddressInfo>; close(): Promise<void> };
const S3rver: new (options: Readonly<Record<string, unknown>>) => OtherServer = createRequire(
  import.meta.url,
)('s3rver');

type Service = { readonly s3: S3Settings; close(): PromiseLike<void> };

async function strict(): Promise<Service> {
  const { endpoint, [Symbol.asyncDispose]: close } = await startS3();
  const keys = { accessKeyId: S3_KEY, secretAccessKey: S3_SECRET };
  return { s3: { endpoint, region: S3_REGION, ...keys }, close };
}

async function byOthers(): Promise<Service> {
  const directory = await mkdtemp(join(tmpdir(), 'nanobot-s3rver-'));
  const where = { address: '127.0.0.1', port: 0, silent: true, directory };
  const server = new S3rver({ ...where, configureBuckets: [{ name: S3_BUCKET, configs: [] }] });
  const { port } = await server.run();
  return {
    s3: {
      ...{ endpoint: `http://127.0.0.1:${port}`, region: 'us-east-1' },
      ...{ accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
    },
    async close() {
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const opened = (s3: S3Settings, bucket = S3_BUCKET, prefix = 'deep/media') =>
  openBucket({ bucket, prefix, s3, field: 'storage.media', env: {}, proxy: '' });
const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');
const keysIn = async (bucket: Bucket, beginning: string) =>
  (await Array.fromAsync(bucket.list(beginning))).map(({ key }) => key);

async function contentOf(bucket: Bucket, key: string) {
  const content = await bucket.get(key);
  return content === undefined ? undefined : Buffer.concat(await Array.fromAsync(content));
}

describe.each([
  ['the strict service', strict],
  ['s3rver', byOthers],
])('a bucket of %s', (_name, start) => {
  let service: Service;
  let bucket: Bucket;

  beforeAll(async () => {
    service = await start();
    bucket = await opened(service.s3);
  });
  afterAll(() => service?.close());

  it('gives back what was written, as bytes or as a file, and knows what is not there', async () => {
    const folder = await temporaryFolder();
    const large = randomBytes(300_000);
    await writeFile(join(folder, 'large'), large);
    await bucket.put('a/large', await openAsBlob(join(folder, 'large')), sha256(large));
    await bucket.put('a/small name&', Buffer.from('small'));
    await rm(folder, { recursive: true });
    expect(await contentOf(bucket, 'a/large')).toEqual(large);
    expect((await contentOf(bucket, 'a/small name&'))?.toString()).toBe('small');
    expect(await bucket.stat('a/large')).toMatchObject({ key: 'a/large', sizeBytes: 300_000 });
    expect([await bucket.get('a/other'), await bucket.stat('a/lar')]).toEqual([
      undefined,
      undefined,
    ]);
  });

  it('lists what begins so, over several pages, and deletes', async () => {
    const keys = Array.from({ length: 8 }, (_, at) => `list/${at}`);
    for (const key of keys) await bucket.put(key, Buffer.from(key));
    expect(await keysIn(bucket, 'list/')).toEqual(keys);
    expect(await keysIn(await opened(service.s3, S3_BUCKET, ''), 'deep/media/list/7')).toEqual([
      'deep/media/list/7',
    ]);
    await bucket.remove('list/3');
    await bucket.remove('list/3');
    expect(await keysIn(bucket, 'list/')).not.toContain('list/3');
  });

  it('says which bucket is not there', async () => {
    const other = await opened(service.s3, 'no-such-bucket');
    const noBucket = expect.objectContaining({
      message: expect.stringMatching(/no bucket no-such/),
    });
    await expect(other.put('a', Buffer.from('a'))).rejects.toEqual(noBucket);
    await expect(other.get('a')).rejects.toEqual(noBucket);
  });
});

it('says that keys are refused, without them', async () => {
  const { s3, close } = await strict();
  const wrong = await opened({ ...s3, secretAccessKey: 'wrong-secret' });
  const refused = await wrong.put('a', Buffer.from('a')).catch((error: Error) => error);
  await close();
  expect(refused).toMatchObject({ message: expect.stringMatching(/refuses: 403 SignatureDoes/) });
  expect(String(refused)).not.toContain('wrong-secret');
});

it('names the settings of missing credentials', async () => {
  const none = { endpoint: '', region: '', accessKeyId: '', secretAccessKey: '' };
  await expect(opened(none)).rejects.toThrow(/storage\.media\.accessKeyId.*AWS_ACCESS_KEY_ID/);
});
