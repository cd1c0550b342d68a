// The suites about what the baselines do not have: the coalescing window, the disk and the age.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { attachStrace, detachStrace, parseCalls } from '../test/support/strace.ts';
import { type Bot, type Contest, lineUp, UNLIMITED } from './entrants.ts';
import { type Load, median, oneBlock, warmUp } from './load.ts';
import { AT_ONCE, type Peers, STREAMING, startPeers } from './peers.ts';
import { nanobot, ROOT } from './subject.ts';
import { figure, header, row } from './table.ts';

const WINDOW_TURNS = 15;
const FOLLOWERS_APART_MS = [100, 500];
/** After this time no message counts as a follower of the last one. */
const QUIET_MS = 4000;

/**
 * The default coalescing window: how long one message waits, and how often the model is called for
 * several. The baselines wait for nothing; after some seconds of rest they are slower too. They do
 * not take five messages at once.
 */
export async function window(contest: Contest): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const entrants = [...contest.yardsticks, ...contest.nanobots({})];
  const bots = await lineUp(stack, STREAMING, entrants);
  const results = bots.map((bot) => ({ bot, addedMs: [] as number[], calls: [] as number[] }));
  for (const bot of bots) await warmUp(bot);
  for (let turn = 0; turn < WINDOW_TURNS; turn += 1) {
    await delay(QUIET_MS);
    for (const { bot, addedMs } of results) addedMs.push(await bot.peers.ask(1));
  }
  for (const apartMs of FOLLOWERS_APART_MS) {
    await delay(QUIET_MS);
    for (const { bot, calls } of results.slice(contest.yardsticks.length)) {
      calls.push(await callsForFive(bot.peers, apartMs));
    }
  }
  header('bot', 'added p50 ms', 'model calls for 5 messages 100 ms apart', '500 ms apart');
  for (const { bot, addedMs, calls } of results) {
    row(bot.program.name, figure(median(addedMs)), ...calls);
  }
}

async function callsForFive(peers: Peers, apartMs: number): Promise<number> {
  const before = peers.modelCalls();
  for (const number of ['one', 'two', 'three', 'four']) {
    peers.telegram.say(1, `Message ${number}`);
    await delay(apartMs);
  }
  await peers.ask(1);
  return peers.modelCalls() - before;
}

const DISK_LOADS: readonly Pick<Load, 'chats' | 'turnsPerChat'>[] = [
  { chats: 1, turnsPerChat: 50 },
  { chats: 1000, turnsPerChat: 1 },
];

/** Commits and syncs, counted by strace, which slows everything else. */
export async function disk(contest: Contest): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const bots = await lineUp(stack, AT_ONCE, contest.nanobots(UNLIMITED));
  header('bot', 'load', 'commits/turn', 'syncs of the store', 'syncs of other files');
  for (const load of DISK_LOADS) {
    for (const bot of bots) {
      await warmUp(bot);
      const turns = load.chats * load.turnsPerChat;
      const { commits, storeSyncs, otherSyncs } = await countDisk(bot, load);
      const name = load.chats === 1 ? 'one chat' : `${figure(load.chats)} chats at once`;
      const perTurn = [commits, storeSyncs, otherSyncs].map((count) => figure(count / turns));
      row(bot.program.name, name, ...perTurn);
    }
  }
}

/** The lock of a write-ahead log that its only writer holds for one transaction. */
const WRITER_LOCK = /-shm>.*F_WRLCK.*l_start=120,/;

async function countDisk(bot: Bot, load: Pick<Load, 'chats' | 'turnsPerChat'>) {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-bench-'));
  const path = join(folder, 'calls');
  const options = ['-y', '-o', path, '-e', 'trace=fcntl,fsync,fdatasync'];
  const strace = await attachStrace(bot.subject.pid, options);
  await oneBlock(bot, load);
  await detachStrace(strace);
  const calls = parseCalls(await readFile(path, 'utf8'));
  await rm(folder, { recursive: true });
  const syncs = calls.filter(({ name }) => name !== 'fcntl');
  const storeSyncs = syncs.filter(({ args }) => args.includes('state.db')).length;
  return {
    commits: calls.filter(({ args }) => WRITER_LOCK.test(args)).length,
    storeSyncs,
    otherSyncs: syncs.length - storeSyncs,
  };
}

const OLD_TURNS = 500;

/** The same chat when it is young and when it is old. */
export async function age(contest: Contest): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const bots = await lineUp(stack, AT_ONCE, contest.nanobots(UNLIMITED));
  header('bot', 'turns 5 to 25: added p50 ms', `turns ${OLD_TURNS} to ${OLD_TURNS + 20}`);
  for (const bot of bots) {
    await warmUp(bot);
    const { addedMs } = await oneBlock(bot, { chats: 1, turnsPerChat: OLD_TURNS + 20 });
    const young = median(addedMs.slice(5, 25));
    const old = median(addedMs.slice(-20));
    row(bot.program.name, figure(young), `${figure(old)} (${(old / young).toFixed(2)}x)`);
  }
}

/** Start and turns with many conversations on disk. */
export async function crowd(): Promise<void> {
  header('sessions on disk', 'first poll ms', 'added p50 ms', 'CPU ms/turn', 'RSS MB');
  for (const sessions of [0, 100_000]) {
    await using peers = await startPeers(STREAMING);
    await using program = await nanobot(peers, { name: 'nanobot', folder: ROOT, ...UNLIMITED });
    const folder = join(program.home, 'sessions');
    await writeSessions(folder, sessions);
    await using subject = program.start();
    const bot = { program, subject, peers };
    const firstPollMs = await peers.firstPoll(subject.startedAt);
    await warmUp(bot);
    // Files that the gateway did not write itself are indexed once, in the background.
    while (!existsSync(join(folder, '.index', 'complete'))) await delay(100);
    const { addedMs, cpuMs } = await oneBlock(bot, { chats: 1, turnsPerChat: 100 });
    const figures = [firstPollMs, median(addedMs), cpuMs / addedMs.length, subject.rssMb()];
    row(sessions, ...figures.map(figure));
  }
}

async function writeSessions(folder: string, count: number) {
  await mkdir(folder, { recursive: true });
  const at = '2026-01-01T00:00:00.000Z';
  for (let first = 0; first < count; first += 1000) {
    await Promise.all(
      Array.from({ length: 1000 }, (_, index) => {
        const key = `telegram:${5_000_000 + first + index}`;
        const metadata = { _type: 'metadata', session_key: key, created_at: at, updated_at: at };
        const entry = { role: 'user', content: 'hello', timestamp: at, turn_id: `${key}#1` };
        const text = `${JSON.stringify({ ...metadata, metadata: {} })}\n${JSON.stringify(entry)}\n`;
        const name = `${encodeURIComponent(key)}_2026-01-01.jsonl`;
        return writeFile(join(folder, name), text, { mode: 0o600 });
      }),
    );
  }
}

/** The packed program as `npm install -g` installs it. */
export async function size(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-bench-'));
  try {
    const options = { cwd: folder, stdio: 'ignore' } as const;
    const tarball = process.env['NANOBOT_TEST_TARBALL'] ?? '';
    execFileSync(
      'npm',
      ['install', '-g', '--ignore-scripts', '--prefix', folder, tarball],
      options,
    );
    const kilobytes = execFileSync('du', ['-sk', folder]).toString();
    const list = execFileSync('npm', ['ls', '-g', '--all', '--parseable', '--prefix', folder]);
    header('installed size MB', 'packages');
    row(
      figure(Number.parseInt(kilobytes, 10) / 1024),
      list.toString().trim().split('\n').length - 1,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
