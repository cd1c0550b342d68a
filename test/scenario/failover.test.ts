// Two processes on a PostgreSQL server that a standby follows, behind one address: a commit, or the
// whole server, takes seconds, the primary is lost and the standby takes its place, the address leads
// to a server that only reads. Each message is answered once, and nobody hears anything else.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { isFullCampaign } from '../support/campaign.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';
import {
  hasPostgres,
  type PostgresServer,
  type Standby,
  startPostgres,
} from '../support/postgres.ts';
import {
  answersEach,
  makeProcessCluster,
  type ProcessCluster,
} from '../support/process-cluster.ts';

const OWNER = 900;
const CHATS = [OWNER, 901, 902, 903];
const WAIT_MS = 45_000;
/** Of the full campaign. */
const FAILOVERS = 20;
const ROUNDS = 4;

let primary: PostgresServer;
let standby: Standby;
/** The address of the database. */
let address: FaultProxy;
let direct: string;
let telegram: BotApi;
let model: LlmServer;
let cluster: ProcessCluster;

beforeAll(async () => {
  if (!hasPostgres) return;
  primary = await startPostgres(['max_connections=60']);
  direct = await primary.database();
  standby = await primary.standby();
  address = await startFaultProxy({ port: primary.port });
  telegram = await startBotApi();
  model = await startLlmServer({ respond: echo });
  const url = new URL(direct);
  url.port = String(address.port);
  cluster = await makeProcessCluster(url.href, () => answersEach(telegram, model));
  for (const role of ['all', 'all'] as const) await (await cluster.add(role)).start();
  await cluster.nanobot('pair', 'approve', 'telegram', String(OWNER), '--role', 'owner');
}, 180_000);
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await model?.[Symbol.asyncDispose]();
  await telegram?.[Symbol.asyncDispose]();
  await address?.[Symbol.asyncDispose]();
  await standby?.[Symbol.asyncDispose]();
  await primary?.[Symbol.asyncDispose]();
});

const said = new Map<number, string[]>();
function say(chat: number, nonce: string): void {
  telegram.say(chat, `repeat nonce-${nonce}`);
  said.set(chat, [...(said.get(chat) ?? []), nonce]);
}
const texts = (chat: number) =>
  telegram
    .chat(chat)
    .messages.filter(({ from }) => from === 'bot')
    .map(({ text }) => text);
const isMarked = (text: string) => text.includes('the first try was not confirmed');
/** The answers in the chat, each without the repeats that say that they are repeats. */
const answers = (chat: number) =>
  texts(chat)
    .filter((text) => !isMarked(text))
    .map((text) => /^nonce-(\w+)$/.exec(text)?.[1] ?? text);

async function allAnswered(): Promise<void> {
  for (const [chat, nonces] of said) {
    const isSaid = (nonce: string) => texts(chat).some((text) => text.includes(`nonce-${nonce}`));
    await telegram.waitFor(() => nonces.every(isSaid), WAIT_MS);
  }
}

/** For how many seconds the oldest commit has waited for the standby. */
async function waitingSecs(): Promise<number> {
  const [row] = await primary.query(
    direct,
    `SELECT extract(epoch FROM max(clock_timestamp() - state_change)) AS secs
     FROM pg_stat_activity WHERE wait_event = 'SyncRep'`,
  );
  return Number(row?.['secs']);
}
const logs = async () =>
  (await Promise.all(cluster.members.map(({ home }) => home.logs()))).join('');
const readOnlyTimes = async () => (await logs()).split('SQLSTATE 25006').length;
const unconfirmed = () => JSON.stringify(telegram.unconfirmed);

describe.skipIf(!hasPostgres)('processes on a server with a standby', () => {
  it('wait for a commit that takes seconds, and take nobody for dead', async () => {
    for (const chat of CHATS) say(chat, `s${chat}x1`);
    await allAnswered();
    const leaders = () => primary.query(direct, 'SELECT * FROM nanobot.leader ORDER BY resource');
    const before = await leaders();
    standby.pause();
    for (const chat of CHATS) say(chat, `s${chat}x2`);
    // Longer than a process may be silent.
    await expect.poll(waitingSecs).toBeGreaterThan(5);
    expect(unconfirmed()).toContain('x2');
    standby.resume();
    await allAnswered();
    expect(await leaders()).toEqual(before);
  });

  it('continue when the server has stood still for longer than a process may be silent', async () => {
    const silences = async () =>
      (await logs()).split('this process may have lost what it held').length;
    const before = await silences();
    primary.pause();
    for (const chat of CHATS) say(chat, `h${chat}`);
    await expect.poll(silences).toBe(before + cluster.members.length);
    expect(unconfirmed()).toContain(`h${OWNER}`);
    primary.resume();
    await allAnswered();
    for (const [chat, nonces] of said) expect(answers(chat)).toEqual(nonces);
  });

  it('lose and double nothing when the primary is lost and the standby takes its place', async () => {
    const lost = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    model.respond((request) => {
      begun.resolve();
      return { ...echo(request), gate: lost.promise };
    });
    for (const chat of CHATS) say(chat, `p${chat}x2`);
    await begun.promise;
    await primary.lose();
    for (const chat of CHATS) say(chat, `p${chat}x3`);
    lost.resolve();
    model.respond(echo);
    address.lead(standby.port);
    // It only reads yet.
    await expect.poll(readOnlyTimes).toBeGreaterThan(10);
    const sessions = await primary.query(
      direct.replace(`:${primary.port}/`, `:${standby.port}/`),
      `SELECT pid FROM pg_stat_activity WHERE application_name LIKE '% pulse'`,
    );
    expect(sessions.length).toBeLessThanOrEqual(cluster.members.length);
    expect(CHATS.flatMap(answers).filter((nonce) => /^p.*x/.test(nonce))).toEqual([]);
    expect(unconfirmed()).toContain('x3');
    await standby.promote();
    await allAnswered();
    for (const [chat, nonces] of said) expect(answers(chat)).toEqual(nonces);
  });

  it('use no server that only reads', async () => {
    await primary.start();
    await primary.query(direct, 'ALTER SYSTEM SET default_transaction_read_only = on');
    await primary.query(direct, 'SELECT pg_reload_conf()');
    const before = await readOnlyTimes();
    address.lead(primary.port);
    for (const chat of CHATS) say(chat, `r${chat}`);
    await expect.poll(readOnlyTimes).toBeGreaterThan(before + 3);
    expect(unconfirmed()).toContain(`r${OWNER}`);
    address.lead(standby.port);
    await allAnswered();
    for (const [chat, nonces] of said) expect(answers(chat)).toEqual(nonces);
    expect(telegram.unconfirmed).toEqual([]);
    expect(telegram.violations).toEqual([]);
  });

  it.skipIf(!isFullCampaign())(
    'lose and double nothing in one failover after the other',
    async () => {
      await using servers = new AsyncDisposableStack();
      let current = standby;
      for (let each = 0; each < FAILOVERS; each += 1) {
        const next = servers.use(await current.standby());
        for (let round = 0; round < ROUNDS; round += 1) {
          const before = CHATS.flatMap(texts).length;
          for (const chat of CHATS) say(chat, `f${each}x${round}`);
          // Each time at another moment.
          const heard = before + (each % (CHATS.length + 1));
          await telegram.waitFor(() => CHATS.flatMap(texts).length >= heard, WAIT_MS);
          if (round !== ROUNDS / 2) continue;
          await current.lose();
          address.lead(next.port);
          await next.promote();
          current = next;
        }
      }
      await servers.use(await current.standby());
      await allAnswered();
      for (const [chat, nonces] of said) expect(answers(chat)).toEqual(nonces);
      expect(telegram.violations).toEqual([]);
    },
  );
});
