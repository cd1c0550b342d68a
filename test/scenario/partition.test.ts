// Processes of which each has a way of its own to the database, and a clock of its own: one is cut off
// while the others reach it, comes back, and takes part again. Each message is answered once, and
// nobody hears anything else.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { echo, type LlmReply, type LlmServer, startLlmServer } from '../support/llm-server.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import {
  answersEach,
  type Member,
  makeProcessCluster,
  type ProcessCluster,
} from '../support/process-cluster.ts';
import { laterBy } from '../support/shifted-clock.ts';

const OWNER = 900;
const CHATS = [OWNER, 901, 902, 903];
/** Where jobs report. */
const JOBS = 910;
const WAIT_MS = 45_000;
const MINUTES_MS = 60_000;

type Node = { readonly member: Member; readonly way: FaultProxy };
type Report = {
  readonly name: string;
  readonly leads: readonly string[];
  readonly turns: number;
};

let server: PostgresServer;
let telegram: BotApi;
let model: LlmServer;
let cluster: ProcessCluster;
const nodes: Node[] = [];

beforeAll(async () => {
  if (!hasPostgres) return;
  server = await startPostgres(['max_connections=60']);
  telegram = await startBotApi();
  model = await startLlmServer({ respond: echo });
  const url = await server.database();
  cluster = await makeProcessCluster(url, () => answersEach(telegram, model));
  const members = [
    { role: 'channels', shiftMs: 5 * MINUTES_MS },
    { role: 'channels', shiftMs: -5 * MINUTES_MS },
    { role: 'workers', shiftMs: 4 * MINUTES_MS },
    { role: 'workers', shiftMs: -4 * MINUTES_MS },
  ] as const;
  for (const { role, shiftMs } of members) {
    const way = await startFaultProxy({ port: server.port });
    const own = { ...laterBy(shiftMs), DATABASE_URL: url.replace(`${server.port}`, `${way.port}`) };
    nodes.push({ member: await cluster.add(role, {}, own), way });
  }
  const [first, ...others] = nodes;
  await first?.member.start();
  await Promise.all(others.map(({ member }) => member.start()));
  await cluster.nanobot('pair', 'approve', 'telegram', String(OWNER), '--role', 'owner');
}, 180_000);
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await Promise.all(nodes.map(({ way }) => way[Symbol.asyncDispose]()));
  await model?.[Symbol.asyncDispose]();
  await telegram?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

const says = (chat: number, nonce: string) => telegram.say(chat, `repeat nonce-${nonce}`);
const texts = (chat: number) =>
  telegram
    .chat(chat)
    .messages.filter(({ from }) => from === 'bot')
    .map(({ text }) => text);
/** Without the repeats that say that they are repeats. */
const heard = (chat: number) =>
  texts(chat).filter((text) => !text.includes('the first try was not confirmed'));
const hears = (chat: number, part: string) =>
  telegram.waitFor(() => texts(chat).some((text) => text.includes(part)), WAIT_MS);
const answered = (chat: number, nonce: string) => hears(chat, `nonce-${nonce}`);

const reports = async (): Promise<readonly Report[]> =>
  JSON.parse(await cluster.nanobot('nodes', '--json'));
/** The process that does this now. */
async function nodeThat(does: (report: Report) => boolean): Promise<Node> {
  const pid = Number((await reports()).find(does)?.name.split('/').at(-1));
  const node = nodes.find(({ member }) => member.process?.pid === pid);
  if (node === undefined) throw new TypeError('no process does this');
  return node;
}

/** Answers the first request only when `release` is called. */
function holdFirst() {
  const begun = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  model.respond((request): LlmReply => {
    model.respond(echo);
    begun.resolve();
    return { ...echo(request), gate: held.promise };
  });
  return { begun: begun.promise, release: held.resolve };
}

describe.skipIf(!hasPostgres)('processes whose clocks differ by minutes', () => {
  it('run each job once and at its time, whichever of them live', async () => {
    const [channels, , worker] = nodes;
    const job = async (name: string) => {
      const dueAt = Date.now() + 1000;
      await cluster.nanobot(
        'cron',
        'add',
        name,
        '--say',
        '--at',
        'in 1s',
        '--to',
        `telegram:${JOBS}`,
      );
      await hears(JOBS, name);
      expect(Date.now()).toBeGreaterThanOrEqual(dueAt);
    };
    await job('early');
    // Those whose clocks are ahead.
    await channels?.member.kill();
    await worker?.member.kill();
    await job('late');
    says(OWNER, 'j1');
    await answered(OWNER, 'j1');
    await channels?.member.start();
    await worker?.member.start();
    expect(heard(JOBS)).toEqual(['early', 'late']);
  });

  it('continue without those that are cut off from the database, and with them afterwards', async () => {
    const { begun, release } = holdFirst();
    says(OWNER, 't1');
    await begun;
    const worker = await nodeThat(({ turns }) => turns > 0);
    const leader = await nodeThat(({ leads }) => leads.includes('telegram'));
    const cut = [worker, leader];
    for (const { way } of cut) await way.set({ kind: 'blackhole' });
    for (const chat of CHATS) says(chat, 't2');
    for (const chat of CHATS) await answered(chat, 't2');
    // The answer of the one that is cut off comes too late.
    release();
    says(OWNER, 't3');
    await answered(OWNER, 't3');
    for (const { way } of cut) await way.set({ kind: 'pass' });
    await expect.poll(async () => (await reports()).length).toBe(nodes.length);
    for (const { member } of nodes.filter((node) => !cut.includes(node))) await member.stop();
    for (const chat of CHATS) says(chat, 't4');
    for (const chat of CHATS) await answered(chat, 't4');
    expect(heard(OWNER)).toEqual(['j1', 't1', 't2', 't3', 't4'].map((nonce) => `nonce-${nonce}`));
    for (const chat of CHATS.slice(1)) expect(heard(chat)).toEqual(['nonce-t2', 'nonce-t4']);
    expect(telegram.unconfirmed).toEqual([]);
    expect(telegram.violations).toEqual([]);
  });

  it('end when they are told to, also without the database', async () => {
    const living = nodes.filter(({ member }) => member.process !== undefined);
    for (const { way } of living) await way.set({ kind: 'refuse' });
    const codes = await Promise.all(living.map(({ member }) => member.stop()));
    // Not killed by the signal.
    expect(codes).not.toContain(null);
  });
});
