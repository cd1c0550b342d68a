// The suites of the benchmark. Each prints one table.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LoadOptions, type LoadResult, nowMs, oneTurn, percentiles, runLoad } from './load.ts';
import { mail } from './mail.ts';
import { type Peers, startPeers } from './peers.ts';
import { type Subject, startBareBot, startGateway } from './subject.ts';
import { whatsapp } from './whatsapp.ts';

const MODEL_MS = 50;
const DEFAULT_WINDOW_MS = 400;
const SETTLE_MS = 2000;
const START_TIMEOUT_MS = 60_000;

type Starter = (peers: Peers) => Promise<Subject>;

const starters: readonly Starter[] = [
  startBareBot,
  (peers) => startGateway(peers, { quietMs: 0 }),
  (peers) => startGateway(peers, { quietMs: DEFAULT_WINDOW_MS }),
];

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const row = (...cells: readonly (string | number)[]) => console.log(`| ${cells.join(' | ')} |`);
const ms = (value: number) => value.toFixed(1);

function header(...titles: readonly string[]) {
  row(...titles);
  row(...titles.map(() => '---'));
}

async function warm(peers: Peers) {
  for (let turn = 0; turn < 5; turn += 1) await oneTurn(peers, 1 + turn);
}

async function measured(starter: Starter, options: LoadOptions): Promise<[string, LoadResult]> {
  await using peers = await startPeers(options.modelMs);
  await using subject = await starter(peers);
  await warm(peers);
  return [subject.name, await runLoad(subject, peers, options)];
}

/** Every subject in turn, several rounds; the table shows the median round of each. */
async function compare(options: LoadOptions, rounds: number) {
  const results = new Map<string, LoadResult[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const starter of starters) {
      const [name, result] = await measured(starter, options);
      results.set(name, [...(results.get(name) ?? []), result]);
    }
  }
  header('bot', 'chats', 'added p50 ms', 'p95', 'p99', 'CPU ms/turn', 'turns/s');
  for (const [name, all] of results) {
    const median = (pick: (result: LoadResult) => number) => percentiles(all.map(pick)).p50;
    row(
      name,
      options.chats,
      ms(median((result) => result.addedMs.p50)),
      ms(median((result) => result.addedMs.p95)),
      ms(median((result) => result.addedMs.p99)),
      ms(median((result) => result.cpuMsPerTurn)),
      ms(median((result) => result.turnsPerSecond)),
    );
  }
  console.log();
}

async function latency() {
  const steady = { modelMs: MODEL_MS, ratePerSecond: 25 };
  await compare({ chats: 1, turns: 40, modelMs: MODEL_MS }, 3);
  await compare({ chats: 100, turns: 300, ...steady }, 3);
  await compare({ chats: 1000, turns: 1000, ...steady }, 1);
}

async function burst() {
  await compare({ chats: 100, turns: 500, modelMs: MODEL_MS }, 3);
  await compare({ chats: 1000, turns: 2000, modelMs: MODEL_MS }, 1);
}

async function start() {
  header('bot', 'first poll ms', 'first reply ms', 'RSS idle MB', 'RSS after 1,000 chats MB');
  for (const starter of starters.slice(0, 2)) {
    await using peers = await startPeers(MODEL_MS);
    await using subject = await starter(peers);
    await firstPoll(peers);
    const firstPollMs = nowMs() - subject.startedAt;
    await oneTurn(peers, 1);
    const firstReplyMs = nowMs() - subject.startedAt;
    await runLoad(subject, peers, { chats: 1000, turns: 1000, modelMs: MODEL_MS });
    await pause(SETTLE_MS);
    // Before the first question, which loads the model's client, and not at the very first start,
    // which compiles.
    const idleMb = await idleMemory(starter);
    row(subject.name, ms(firstPollMs), ms(firstReplyMs), ms(idleMb), ms(subject.rssMb()));
  }
}

async function idleMemory(starter: Starter): Promise<number> {
  await using peers = await startPeers(MODEL_MS);
  await using subject = await starter(peers);
  await firstPoll(peers);
  await pause(SETTLE_MS);
  return subject.rssMb();
}

async function firstPoll({ telegram }: Peers): Promise<void> {
  const isPoll = () => telegram.calls.some(({ method }) => method === 'getUpdates');
  await telegram.waitFor(isPoll, START_TIMEOUT_MS);
}

async function age() {
  await using peers = await startPeers(MODEL_MS);
  await using subject = await startGateway(peers, { quietMs: 0 });
  await warm(peers);
  const waits: number[] = [];
  for (let turn = 0; turn < 510; turn += 1) waits.push((await oneTurn(peers, 77)) - MODEL_MS);
  const young = percentiles(waits.slice(5, 25)).p50;
  const old = percentiles(waits.slice(-20)).p50;
  header('turns of one session', 'added p50 ms');
  row('5 to 25', ms(young));
  row('490 to 510', ms(old));
  row('ratio', (old / young).toFixed(2));
  console.error(`memory after 510 turns: ${ms(subject.rssMb())} MB`);
}

async function crowd() {
  header('sessions on disk', 'first poll ms', 'added p50 ms', 'CPU ms/turn', 'RSS MB');
  for (const sessions of [0, 100_000]) {
    await using peers = await startPeers(MODEL_MS);
    let folder = '';
    await using subject = await startGateway(peers, {
      quietMs: 0,
      async prepare(home) {
        folder = join(home, 'sessions');
        await writeSessions(folder, sessions);
      },
    });
    await firstPoll(peers);
    const firstPollMs = nowMs() - subject.startedAt;
    await warm(peers);
    await indexed(folder);
    const options = { chats: 20, turns: 200, ratePerSecond: 15, modelMs: MODEL_MS };
    const result = await runLoad(subject, peers, options);
    row(
      sessions,
      ms(firstPollMs),
      ms(result.addedMs.p50),
      ms(result.cpuMsPerTurn),
      ms(subject.rssMb()),
    );
  }
}

/** Files that a gateway did not write itself are indexed once, in the background. */
async function indexed(folder: string) {
  const mark = join(folder, '.index', 'complete');
  while (!existsSync(mark)) await pause(100);
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

async function size() {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-size-'));
  const root = join(import.meta.dirname, '..');
  try {
    for (const name of ['package.json', 'package-lock.json', '.npmrc']) {
      await cp(join(root, name), join(folder, name));
    }
    const options = { cwd: folder, stdio: 'ignore' } as const;
    execFileSync('npm', ['ci', '--omit=dev', '--ignore-scripts'], options);
    const kilobytes = execFileSync('du', ['-sk', 'node_modules'], { cwd: folder }).toString();
    const packages = execFileSync('npm', ['ls', '--all', '--parseable', '--omit=dev'], {
      cwd: folder,
    });
    header('installed size MB', 'packages');
    row(
      ms(Number.parseInt(kilobytes, 10) / 1024),
      packages.toString().trim().split('\n').length - 1,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export const SUITES: Readonly<Record<string, () => Promise<void>>> = {
  latency,
  burst,
  start,
  age,
  crowd,
  size,
  whatsapp,
  mail,
};
