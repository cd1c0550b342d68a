// The suites that measure nanobot beside the two baselines. A figure of nanobot is followed by its
// ratio to the bare bot and to the agent bot of the same run.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Contest, type Entrant, lineUp, UNLIMITED } from './entrants.ts';
import { type Block, inTurn, type Load, median, oneBlock, percentile, warmUp } from './load.ts';
import { AT_ONCE, nowMs, type Pace, STREAMING, startPeers, THINKING } from './peers.ts';
import { type Cell, figure, header, row } from './table.ts';

/** A column of a table, from the blocks of one bot. */
type Column = readonly [title: string, of: (blocks: readonly Block[]) => number];

const added = (share: number) => (blocks: readonly Block[]) =>
  percentile(
    blocks.flatMap(({ addedMs }) => addedMs),
    share,
  );
const cpu: Column = [
  'CPU ms/turn',
  (blocks) => median(blocks.map(({ cpuMs, addedMs }) => cpuMs / addedMs.length)),
];

/** One chat, one turn after the other. */
export function latency(contest: Contest): Promise<void> {
  const load = { chats: 1, turnsPerChat: 30, blocks: 5, keepsChats: true };
  return compare(contest, STREAMING, load, [
    ['added p50 ms', added(0.5)],
    ['p95', added(0.95)],
    cpu,
  ]);
}

/** All chats at one instant. */
export async function burst(contest: Contest): Promise<void> {
  const replied: Column = ['all replied ms', (blocks) => median(blocks.map((it) => it.spanMs))];
  for (const { chats, blocks } of [
    { chats: 100, blocks: 5 },
    { chats: 1000, blocks: 3 },
  ]) {
    console.log(`\n${chats} chats\n`);
    await compare(contest, THINKING, { chats, turnsPerChat: 1, blocks }, [replied, cpu]);
  }
}

/** 32 chats, each with its next question as soon as it has its answer. */
export function loop(contest: Contest): Promise<void> {
  const turnsPerSecond: Column = [
    'turns/s',
    (blocks) => median(blocks.map(({ addedMs, spanMs }) => addedMs.length / (spanMs / 1000))),
  ];
  const load = { chats: 32, turnsPerChat: 25, blocks: 3 };
  return compare(contest, AT_ONCE, load, [turnsPerSecond, cpu]);
}

async function compare(contest: Contest, pace: Pace, load: Load, columns: readonly Column[]) {
  await using stack = new AsyncDisposableStack();
  const bots = await lineUp(stack, pace, [...contest.yardsticks, ...contest.nanobots(UNLIMITED)]);
  const results = await inTurn(bots, load);
  printRatios(
    columns.map(([title]) => title),
    [...results].map(([{ program }, blocks]) => ({
      name: program.name,
      values: columns.map(([, of]) => of(blocks)),
    })),
  );
}

type Result = { readonly name: string; readonly values: readonly number[] };

/** The first results are those of the baselines. */
function printRatios(titles: readonly string[], results: readonly Result[]): void {
  header('bot', ...titles);
  results.forEach(({ name, values }, index) => {
    const yardsticks = results.slice(0, Math.min(index, 2));
    const cells = values.map((value, column): Cell => {
      const ratios = yardsticks.map((it) => `${(value / (it.values[column] ?? 1)).toFixed(1)}x`);
      return ratios.length === 0 ? figure(value) : `${figure(value)} (${ratios.join(', ')})`;
    });
    row(name, ...cells);
  });
}

const STARTS = 5;
/** After this time a process has kept what it compiled, for the next one. */
const KEPT_MS = 6000;

/** From the start of the process. Cold: with a new home and an empty compile cache. */
export async function start(contest: Contest): Promise<void> {
  const times = new Map<string, { readonly polls: number[]; readonly replies: number[] }>();
  for (let round = 0; round < STARTS; round += 1) {
    const nanobots = [...contest.nanobots(UNLIMITED), contest.sources(UNLIMITED)];
    for (const entrant of [...contest.yardsticks, ...nanobots]) {
      await using stack = new AsyncDisposableStack();
      const peers = stack.use(await startPeers(AT_ONCE));
      const program = stack.use(await entrant(peers));
      const compiled = await mkdtemp(join(tmpdir(), 'nanobot-bench-'));
      stack.defer(() => rm(compiled, { recursive: true, force: true }));
      for (const state of ['cold', 'warm']) {
        const title = `${program.name}, ${state}`;
        const of = times.get(title) ?? { polls: [], replies: [] };
        times.set(title, of);
        await using subject = program.start(compiled);
        of.polls.push(await peers.firstPoll(subject.startedAt));
        await peers.ask(1);
        of.replies.push(nowMs() - subject.startedAt);
        if (state === 'cold') await delay(KEPT_MS);
      }
    }
  }
  header('bot', 'first poll ms', 'first reply ms');
  for (const [title, { polls, replies }] of times) {
    row(title, figure(median(polls)), figure(median(replies)));
  }
}

const IDLE_MS = 10_000;
const RESTED_MS = 30_000;

/** RSS idle, after a turn and a rest, and after all chats at one instant. */
export async function memory(contest: Contest): Promise<void> {
  const entrants = [...contest.yardsticks, ...contest.nanobots(UNLIMITED)];
  await compileFirst(entrants);
  await using stack = new AsyncDisposableStack();
  const limited = contest.nanobots({ quietMs: 0 }, ', default concurrency').slice(0, 1);
  const bots = await lineUp(stack, THINKING, [...entrants, ...limited]);
  const look = () => bots.map(({ subject }) => subject.rssMb());
  await delay(IDLE_MS);
  const idle = look();
  for (const { peers } of bots) await peers.ask(1);
  await delay(RESTED_MS);
  const rested = look();
  for (const bot of bots) {
    await warmUp(bot);
    await oneBlock(bot, { chats: 1000, turnsPerChat: 1 });
  }
  const looks = [idle, rested, look()];
  printRatios(
    ['idle MB', '30 s after a turn', 'after 1,000 chats at once'],
    bots.map(({ program }, bot) => ({
      name: program.name,
      values: looks.map((values) => values[bot] ?? Number.NaN),
    })),
  );
}

/** The first process of a program compiles it, which takes memory. */
async function compileFirst(entrants: readonly Entrant[]): Promise<void> {
  await using stack = new AsyncDisposableStack();
  await lineUp(stack, AT_ONCE, entrants);
  await delay(KEPT_MS);
}
