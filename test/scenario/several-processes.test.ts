// Several processes of the gateway on one PostgreSQL: each message is answered once, whichever of
// them is killed, stopped or started.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { makeProcessCluster, type ProcessCluster } from '../support/process-cluster.ts';

const OWNER = 900;

let server: PostgresServer;
let telegram: BotApi;
let model: LlmServer;
let cluster: ProcessCluster;

beforeAll(async () => {
  if (!hasPostgres) return;
  server = await startPostgres();
  telegram = await startBotApi();
  model = await startLlmServer({ respond: echo });
  cluster = await makeProcessCluster(await server.database(), () => ({
    agents: { defaults: { model: 'openai/sim-1' } },
    coalesce: { quietMs: 0, continuationMs: 0 },
    providers: { openai: { apiKey: 'sk-several', apiBase: model.openaiBase } },
    channels: {
      telegram: {
        ...{ enabled: true, token: telegram.token, apiRoot: telegram.apiRoot, allowFrom: ['*'] },
        streaming: false,
      },
    },
  }));
  for (const role of ['channels', 'channels', 'workers', 'workers'] as const) {
    await (await cluster.add(role)).start();
  }
}, 120_000);
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await model?.[Symbol.asyncDispose]();
  await telegram?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

const says = (chat: number, nonce: string) => telegram.say(chat, `repeat nonce-${nonce}`);
const count = (chat: number, nonce: string) =>
  telegram
    .chat(chat)
    .messages.filter(({ from, text }) => from === 'bot' && text.includes(`nonce-${nonce}`)).length;
const answered = (chat: number, nonce: string) =>
  telegram.waitFor(() => count(chat, nonce) > 0, 30_000);

describe.skipIf(!hasPostgres)('several processes on one PostgreSQL', () => {
  it('answer what one of them receives, each message once', async () => {
    for (let each = 0; each < 20; each += 1) says(OWNER + (each % 5), `a${each}`);
    for (let each = 0; each < 20; each += 1) await answered(OWNER + (each % 5), `a${each}`);
    for (let each = 0; each < 20; each += 1) expect(count(OWNER + (each % 5), `a${each}`)).toBe(1);
    expect(telegram.violations).toEqual([]);
  });

  it('take over from a process that is killed', async () => {
    const [first, , worker] = cluster.members;
    says(OWNER, 'b0');
    await answered(OWNER, 'b0');
    await first?.kill();
    await worker?.kill();
    const at = performance.now();
    says(OWNER, 'b1');
    says(OWNER + 1, 'b2');
    await answered(OWNER, 'b1');
    await answered(OWNER + 1, 'b2');
    console.log('takeover', performance.now() - at);
    await first?.start();
    await worker?.start();
  });

  it('take over from a process that is stopped, which then has nothing more to say', async () => {
    const [first, second, worker] = cluster.members;
    for (const member of [first, second]) {
      member?.freeze();
      const at = performance.now();
      says(OWNER, `c${member === first}`);
      await answered(OWNER, `c${member === first}`);
      console.log('takeover', performance.now() - at);
      member?.thaw();
    }
    worker?.freeze();
    says(OWNER + 3, 'd1');
    says(OWNER + 4, 'd2');
    await answered(OWNER + 3, 'd1');
    await answered(OWNER + 4, 'd2');
    worker?.thaw();
    says(OWNER + 4, 'd3');
    await answered(OWNER + 4, 'd3');
    expect(count(OWNER + 4, 'd3')).toBe(1);
    console.log(telegram.violations);
    for (const m of cluster.members)
      console.log(
        (await m.home.logs())
          .split('\n')
          .filter((l) => /warn|error|"level":"e|dead|leading/.test(l))
          .slice(-30)
          .join('\n'),
      );
  });
});
