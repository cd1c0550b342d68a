// Processes that reach PostgreSQL through PgBouncer, while the server behind it crashes and starts
// again: messages that come meanwhile are answered, each once and in the order of its chat.

import { expect, it } from 'vitest';
import { startBotApi } from '../support/bot-api.ts';
import { echo, startLlmServer } from '../support/llm-server.ts';
import { hasPgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';
import { answersEach, makeProcessCluster } from '../support/process-cluster.ts';

const CHAT = 930;
const CHATS = 4;
const ROUNDS = 6;
/** Fewer than the two processes have connections. */
const SESSIONS = 3;
const WAIT_MS = 60_000;

it.skipIf(!hasPostgres || !hasPgBouncer)(
  'answers once what comes while the server behind PgBouncer crashes twice',
  async () => {
    await using server = await startPostgres(['max_connections=40']);
    await using telegram = await startBotApi();
    await using model = await startLlmServer({ respond: echo });
    const url = await server.database();
    await using pooler = await startPgBouncer(url, SESSIONS);
    await using cluster = await makeProcessCluster(
      url,
      () => ({
        store: {
          engine: 'postgres',
          url: { env: 'DATABASE_URL' } as unknown as string,
          poolUrl: { env: 'POOL_URL' } as unknown as string,
        },
        ...answersEach(telegram, model),
      }),
      { POOL_URL: pooler.urlOf(url) },
    );
    for (const role of ['channels', 'workers'] as const) await (await cluster.add(role)).start();
    const heard = (chat: number) =>
      telegram
        .chat(chat)
        .messages.filter(({ from }) => from === 'bot')
        .flatMap(({ text }) => [...text.matchAll(/nonce-(\w+)/g)].map(([, nonce]) => nonce));
    const said = new Map<number, string[]>();
    const all = async () => {
      for (const [chat, nonces] of said) {
        await telegram.waitFor(() => heard(chat).length >= nonces.length, WAIT_MS);
      }
    };
    for (let round = 0; round < ROUNDS; round += 1) {
      for (let chat = CHAT; chat < CHAT + CHATS; chat += 1) {
        const nonce = `${chat}x${round}`;
        telegram.say(chat, `repeat nonce-${nonce}`);
        said.set(chat, [...(said.get(chat) ?? []), nonce]);
      }
      // In the midst of turns, and while nothing happens.
      if (round === 2) await server.crash();
      if (round === 2) await server.start();
      if (round === 4) await all();
      if (round === 4) await server.crash();
      if (round === 4) await server.start();
    }
    await all();
    for (const [chat, nonces] of said) expect(heard(chat)).toEqual(nonces);
  },
  180_000,
);
