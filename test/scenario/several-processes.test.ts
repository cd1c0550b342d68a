// Several processes of the gateway on one PostgreSQL while people write: killed, stopped and
// continued, the database restarted. Each message is answered once, in the order of its chat.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readEvents } from '../../src/http/page/event-reader.ts';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import {
  callTools,
  echo,
  type LlmReply,
  type LlmRequest,
  type LlmServer,
  say,
  startLlmServer,
} from '../support/llm-server.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import {
  type Member,
  makeProcessCluster,
  type ProcessCluster,
} from '../support/process-cluster.ts';

const OWNER = 900;
const WAIT_MS = 45_000;
/** Has a budget, of which each answer takes so much. */
const LIMITED = 990;
const CAP = 100_000;
const COST = 20_000;
const REFUSED = /is used up|too little for an answer/;

let server: PostgresServer;
let database: string;
let telegram: BotApi;
let model: LlmServer;
let cluster: ProcessCluster;

beforeAll(async () => {
  if (!hasPostgres) return;
  server = await startPostgres(['max_connections=60']);
  telegram = await startBotApi();
  model = await startLlmServer({
    respond: (request) => ({ ...obedient(request), usage: { input: COST - 10, output: 10 } }),
  });
  database = await server.database();
  cluster = await makeProcessCluster(database, () => ({
    agents: { defaults: { model: 'openai/sim-1' } },
    coalesce: { quietMs: 0, continuationMs: 0 },
    limits: {
      messages: { perMinute: 0, perDay: 0 },
      exceptions: [{ who: `telegram:${LIMITED}`, tokensPerDay: CAP }],
    },
    providers: { openai: { apiKey: 'sk-several', apiBase: model.openaiBase } },
    channels: {
      telegram: {
        ...{ enabled: true, token: telegram.token, apiRoot: telegram.apiRoot, allowFrom: ['*'] },
        streaming: false,
      },
    },
  }));
  const roles = ['channels', 'channels', 'workers', 'workers'] as const;
  // The first one makes the tables and the token.
  const members: Member[] = [];
  for (const role of roles) members.push(await cluster.add(role));
  await members[0]?.start();
  await Promise.all(members.slice(1).map((member) => member.start()));
}, 180_000);
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await model?.[Symbol.asyncDispose]();
  await telegram?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

/** `search <words>` searches the earlier conversations of the chat. */
function obedient(request: LlmRequest): LlmReply {
  const result = request.toolResults.at(-1);
  if (result !== undefined) return say(`found: ${result.text}`);
  const [, query] = /search (\w+)/.exec(request.lastUserText) ?? [];
  if (query === undefined) return echo(request);
  return callTools({ name: 'session_search', arguments: { query } });
}

/** What the search finds. */
async function searched(chat: number, query: string): Promise<string> {
  const found = () => telegram.chat(chat).messages.filter(({ text }) => /^found: /.test(text));
  const before = found().length;
  telegram.say(chat, `search ${query}`);
  await telegram.waitFor(() => found().length > before, WAIT_MS);
  return found().at(-1)?.text ?? '';
}

const says = (chat: number, nonce: string) => telegram.say(chat, `repeat nonce-${nonce}`);
/** What the bot said of these in the chat, in order. */
const heard = (chat: number) =>
  telegram
    .chat(chat)
    .messages.filter(({ from }) => from === 'bot')
    .flatMap(({ text }) => [...text.matchAll(/nonce-(\w+)/g)].map(([, nonce]) => nonce));
const answered = (chat: number, nonce: string) =>
  telegram.waitFor(() => heard(chat).includes(nonce), WAIT_MS);

/** What a page on this process is shown of the chat. */
async function followChat({ address, credentials }: GatewayProcess, chat: string) {
  const leaving = new AbortController();
  const url = `${address}/api/v1/chats/${chat}/events?live=delta&after=0`;
  const { body } = await fetch(url, { headers: credentials, signal: leaving.signal });
  const said: { readonly seq: number; readonly text: string }[] = [];
  const reading = (async () => {
    if (body === null) return;
    for await (const event of readEvents(body)) {
      const { type, seq, text } = (event ?? {}) as { type?: string; seq: number; text: string };
      if (type === 'said') said.push({ seq, text });
    }
  })().catch(() => undefined);
  return {
    numbers: () => said.map(({ seq }) => seq),
    texts: () => said.map(({ text }) => text),
    async [Symbol.asyncDispose]() {
      leaving.abort();
      await reading;
    },
  };
}

describe.skipIf(!hasPostgres)('several processes on one PostgreSQL', () => {
  it('answer what one of them receives, each message once', async () => {
    for (let each = 0; each < 20; each += 1) says(OWNER + (each % 5), `a${each}`);
    for (let each = 0; each < 20; each += 1) await answered(OWNER + (each % 5), `a${each}`);
    for (let chat = 0; chat < 5; chat += 1) {
      expect(heard(OWNER + chat)).toEqual([0, 5, 10, 15].map((each) => `a${each + chat}`));
    }
  });

  it('lead each account and each task in one process, and show that', async () => {
    const nodes = JSON.parse(await cluster.nanobot('nodes', '--json'));
    expect(nodes.map(({ role }: { readonly role: string }) => role).toSorted()).toEqual([
      ...['channels', 'channels', 'workers', 'workers'],
    ]);
    const led = nodes.flatMap(({ leads }: { readonly leads: readonly string[] }) => leads);
    expect(led).toContain('telegram');
    expect(led).toContain('task jobs');
    expect(new Set(led).size).toBe(led.length);
    expect(await cluster.nanobot('audit', 'verify')).toContain('unchanged');
  });

  it('show a chat of the page in each of them, whichever gets its messages', async () => {
    const chats = ['one', 'two', 'three'];
    const processes = cluster.members.flatMap(({ process }) => process ?? []);
    await using readers = new AsyncDisposableStack();
    const seen = await Promise.all(
      chats.flatMap((chat) =>
        processes.map(async (process) => readers.use(await followChat(process, chat))),
      ),
    );
    for (const [round, { address, credentials }] of processes.entries()) {
      for (const chat of chats) {
        const { status } = await fetch(`${address}/api/v1/chats/${chat}/messages`, {
          method: 'POST',
          headers: { ...credentials, 'content-type': 'application/json' },
          body: JSON.stringify({ clientId: `m${round}`, text: `search nonce${round}` }),
        });
        expect(status).toBe(202);
      }
      // The question, how its turn ended with the step of its tool, and the answer.
      const all = Array.from({ length: 3 * (round + 1) }, (_, index) => index + 1);
      await expect
        .poll(() => seen.map(({ numbers }) => numbers()), { timeout: WAIT_MS })
        .toEqual(seen.map(() => all));
    }
    const texts = new Set(seen.map(({ texts }) => JSON.stringify(texts())));
    expect(texts.size).toBe(chats.length);
  }, 120_000);

  it('forget everywhere what the owner deletes', async () => {
    const chat = OWNER + 20;
    says(chat, 'f1');
    await answered(chat, 'f1');
    const indexed = () =>
      server.query(database, `SELECT FROM nanobot.text_part WHERE text LIKE '%nonce-f1%'`);
    expect(await searched(chat, 'nonce')).toContain('repeat nonce-f1');
    expect(await indexed()).not.toEqual([]);
    await cluster.nanobot('sessions', 'nuke', '--yes');
    expect(await indexed()).toEqual([]);
    says(chat, 'f2');
    await answered(chat, 'f2');
    const found = await searched(chat, 'nonce');
    expect(found).toContain('repeat nonce-f2');
    expect(found).not.toContain('nonce-f1');
    const files = cluster.members.map(({ home }) => join(home.path, 'index.db'));
    expect(files.filter(existsSync)).toEqual([]);
    const asked = model.requests.map((request) => JSON.stringify(request));
    expect(asked.filter((body) => body.includes('nonce-f2'))).not.toHaveLength(0);
    expect(asked.filter((body) => /nonce-f1[\s\S]*nonce-f2/.test(body))).toEqual([]);
  });

  it('go on where one of them is stopped in order', async () => {
    const [first] = cluster.members;
    says(OWNER, 'b1');
    expect(await first?.stop()).toBe(0);
    says(OWNER, 'b2');
    await answered(OWNER, 'b2');
    expect(heard(OWNER).slice(-2)).toEqual(['b1', 'b2']);
    await first?.start();
  });

  it('take over from processes that are killed or stand still', async () => {
    const [first, second, worker] = cluster.members;
    await second?.kill();
    await worker?.kill();
    says(OWNER, 'k1');
    says(OWNER + 1, 'k2');
    await answered(OWNER, 'k1');
    await answered(OWNER + 1, 'k2');
    await Promise.all([second?.start(), worker?.start()]);
    first?.freeze();
    says(OWNER, 'k3');
    await answered(OWNER, 'k3');
    first?.thaw();
    says(OWNER, 'k4');
    await answered(OWNER, 'k4');
    expect(heard(OWNER).filter((nonce) => nonce?.startsWith('k'))).toEqual(['k1', 'k3', 'k4']);
    expect(telegram.violations).toEqual([]);
  });

  it('keep one budget together', async () => {
    const answersTo = () =>
      telegram
        .chat(LIMITED)
        .messages.filter(({ from }) => from === 'bot')
        .map(({ text }) => (/^nonce-b/.test(text) ? 'answered' : REFUSED.test(text)));
    for (let each = 0; each < 10; each += 1) {
      says(LIMITED, `b${each}`);
      await telegram.waitFor(() => answersTo().filter(Boolean).length > each, WAIT_MS);
    }
    const answered = answersTo().filter((kind) => kind === 'answered').length;
    expect(answered).toBeGreaterThanOrEqual(CAP / COST - 1);
    expect(answered).toBeLessThanOrEqual(CAP / COST);
    // A process stores what it has spent within a second.
    const spent = async () => {
      const [{ rows }] = JSON.parse(await cluster.nanobot('usage', '--json'));
      const own = rows.find(({ key }: { key: string }) => key === `person telegram:${LIMITED}`);
      return own.ledger.spent.tokens;
    };
    await expect.poll(spent).toBe(answered * COST);
  });
});
