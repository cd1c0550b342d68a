// Two processes on one PostgreSQL that keep files of messages in a bucket: what one receives, the
// other reads, without a folder of media that they share.

import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { type LlmServer, say, startLlmServer } from '../support/llm-server.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { makeProcessCluster, type ProcessCluster } from '../support/process-cluster.ts';
import { S3_BUCKET, type S3Server, startS3 } from '../support/s3-server.ts';

const ALICE = 910;
const BOB = 911;
const WAIT_MS = 45_000;

let server: PostgresServer;
let telegram: BotApi;
let model: LlmServer;
let s3: S3Server;
let cluster: ProcessCluster;

beforeAll(async () => {
  if (!hasPostgres) return;
  server = await startPostgres(['max_connections=40']);
  telegram = await startBotApi();
  s3 = await startS3();
  model = await startLlmServer({
    respond: ({ lastUserText, images }) => say(`${lastUserText}: ${images.length} pictures`),
  });
  cluster = await makeProcessCluster(
    await server.database(),
    (path) => ({
      storage: { path, media: { kind: 's3', bucket: S3_BUCKET, prefix: 'files' } },
      agents: { defaults: { model: 'openai/gpt-5' } },
      coalesce: { quietMs: 0, continuationMs: 0 },
      providers: { openai: { apiKey: 'sk-bucket', apiBase: model.openaiBase } },
      channels: {
        telegram: {
          ...{ enabled: true, token: telegram.token, apiRoot: telegram.apiRoot, allowFrom: ['*'] },
          streaming: false,
        },
      },
    }),
    s3.env,
  );
  for (const role of ['channels', 'workers'] as const) await (await cluster.add(role)).start();
}, 180_000);
afterAll(async () => {
  for (const part of [cluster, model, telegram, s3, server]) await part?.[Symbol.asyncDispose]();
});

const photo = async (background: string) => ({
  field: 'photo' as const,
  content: await sharp({ create: { width: 40, height: 30, channels: 3, background } })
    .jpeg()
    .toBuffer(),
});
const heard = (chat: number) =>
  telegram.chat(chat).messages.flatMap(({ from, text }) => (from === 'bot' ? [text] : []));
const hears = (chat: number, words: RegExp) =>
  telegram.waitFor(() => heard(chat).some((text) => words.test(text)), WAIT_MS);
const copies = async (member: number) =>
  (
    await readdir(join(cluster.members[member]?.home.path ?? '', 'media'), { recursive: true })
  ).filter((path) => /^[0-9a-f]{2}\/[0-9a-f]{64}$/.test(path));

describe.skipIf(!hasPostgres)('processes with files in a bucket', () => {
  it('read what another one received', async () => {
    telegram.sendFile(ALICE, { ...(await photo('#f00')), caption: 'red' });
    await hears(ALICE, /red.*: 1 pictures/s);
    expect([...s3.objects.keys()]).toHaveLength(1);
    expect([await copies(0), await copies(1)].map(({ length }) => length)).toEqual([1, 1]);
    expect(existsSync(join(cluster.folder, 'media'))).toBe(false);
  });

  it('lose no file and answer once when the bucket was away; text is answered meanwhile', async () => {
    const come = await s3.vanish();
    telegram.sendFile(ALICE, { ...(await photo('#0f0')), caption: 'green' });
    telegram.say(BOB, 'only text');
    await hears(BOB, /only text/);
    const waits = () => cluster.members[0]?.home.logs() ?? '';
    await expect.poll(waits, { timeout: WAIT_MS }).toContain('a message waits');
    expect(heard(ALICE)).toHaveLength(1);
    await come();
    await hears(ALICE, /green/);
    // The earlier picture of the conversation is shown too.
    expect(heard(ALICE).filter((text) => /green.*: 2 pictures/s.test(text))).toHaveLength(1);
    expect(heard(ALICE)).toHaveLength(2);
    expect(s3.objects.size).toBe(2);
  });
});
