// Several processes on one PostgreSQL: turns that need processor time of their own (a search of the
// workspace), by the number of workers; quick turns of one chat; and what an idle worker costs.

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type PostgresServer, startPostgres } from '../test/support/postgres.ts';
import { UNLIMITED } from './entrants.ts';
import { percentile } from './load.ts';
import { AT_ONCE, type Peers, startPeers } from './peers.ts';
import { cpuMs, nanobot, ROOT, type Subject } from './subject.ts';
import { figure, header, row } from './table.ts';

const CHATS = 16;
const HEAVY_MS = 40_000;
const QUICK_TURNS = 100;
/** For each worker: the first turns of a process take several times as long. */
const WARM_UP_TURNS = 30;
const IDLE_MS = 20_000;
const SECOND_MS = 1000;
const FILES = 2;
const LINES_PER_FILE = 8000;
const FIRST_CHAT = 20_000;
/** Reads all of the files and finds nothing. */
const SEARCH = {
  name: 'search_files',
  arguments: { query: 'no such (words|things)', regex: true, path: 'records' },
};

/** The processes of one installation, and how much processor time the database took. */
type Setup = {
  readonly name: string;
  readonly gateways: readonly Subject[];
  readonly workers: readonly Subject[];
  databaseMs(): number;
};

/**
 * @param share of a core for each worker, so that each has a capacity of its own on a machine with
 * fewer cores than processes; 0: no limit
 */
export async function workers(share: number): Promise<void> {
  header(
    ...[
      'processes',
      'turns/s',
      'cores used by workers',
      'p50 ms',
      'p99',
      'CPU ms/turn: gateways',
      'database',
    ],
    ...['quick turn p50 ms', 'p99', 'CPU ms: gateways', 'database'],
  );
  using whole = new DisposableStack();
  if (share > 0) whole.defer(grouped(process.pid, 0));
  const idle: string[] = [];
  for (const count of share > 0 ? [1, 2, 4] : [0, 1, 2, 4]) {
    await using stack = new AsyncDisposableStack();
    let isHeavy = false;
    const peers = stack.use(await startPeers({ ...AT_ONCE, call: () => isHeavy && SEARCH }));
    const setup = await (count === 0 ? onFile(stack, peers) : onPostgres(stack, peers, count));
    for (let turn = 0; turn < WARM_UP_TURNS * Math.max(1, count); turn += 1)
      await peers.ask(turn + 1);
    if (share > 0) for (const { pid } of setup.workers) stack.defer(grouped(pid, share));
    const quick = await measured(setup, () => sequence(peers));
    isHeavy = true;
    await allChats(peers, HEAVY_MS / 4);
    const before = sum(setup.workers.map((each) => each.cpuMs()));
    let used = 0;
    let inTime = 0;
    const heavy = await measured(setup, () =>
      allChats(peers, HEAVY_MS, (count) => {
        inTime = count;
        used = sum(setup.workers.map((each) => each.cpuMs())) - before;
      }),
    );
    row(
      ...[setup.name, figure(inTime / (HEAVY_MS / SECOND_MS)), (used / HEAVY_MS).toFixed(2)],
      ...[...heavy.figures, ...quick.figures],
    );
    if (setup.workers.length > 0) idle.push(await idleCost(setup));
  }
  console.log(`\n${idle.join('\n')}`);
}

async function sequence(peers: Peers): Promise<readonly number[]> {
  const waits: number[] = [];
  for (let turn = 0; turn < QUICK_TURNS; turn += 1) waits.push(await peers.ask(1));
  return waits;
}

/** Each chat writes again when it was answered. @param atEnd told the turns answered in time */
async function allChats(
  peers: Peers,
  spanMs: number,
  atEnd: (count: number) => void = () => undefined,
): Promise<readonly number[]> {
  const waits: number[] = [];
  let isOver = false;
  const chat = async (id: number) => {
    while (!isOver) waits.push(await peers.ask(id));
  };
  const chats = Array.from({ length: CHATS }, (_, each) => chat(FIRST_CHAT + each));
  await delay(spanMs);
  isOver = true;
  atEnd(waits.length);
  await Promise.all(chats);
  return waits;
}

const CGROUPS = '/sys/fs/cgroup';
/** Short, so that a limited process is never still for long. */
const PERIOD_US = 5000;

/**
 * Puts a process into a control group (version 1 or 2) that comes before other programs of the
 * machine, and may have this share of a core; 0: no limit. Later children are in it too. Returns
 * what ends that.
 */
function grouped(pid: number, share: number): () => void {
  const isFirst = existsSync(join(CGROUPS, 'cpu'));
  const root = join(CGROUPS, isFirst ? 'cpu' : '');
  const group = join(root, `nanobot-bench-${pid}`);
  const put = (name: string, value: string | number) =>
    writeFileSync(join(group, name), String(value));
  const quota = Math.round(PERIOD_US * share);
  mkdirSync(group);
  if (isFirst) {
    put('cpu.shares', 262_144);
    if (quota > 0) put('cpu.cfs_period_us', PERIOD_US);
    if (quota > 0) put('cpu.cfs_quota_us', quota);
  } else {
    put('cpu.weight', 10_000);
    if (quota > 0) put('cpu.max', `${quota} ${PERIOD_US}`);
  }
  put('cgroup.procs', pid);
  return () => {
    for (const each of readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n')) {
      if (each !== '') writeFileSync(join(root, 'cgroup.procs'), each);
    }
    rmdirSync(group);
  };
}

const sum = (values: readonly number[]) => values.reduce((left, right) => left + right, 0);
const gatewayMs = ({ gateways }: Setup) => sum(gateways.map((each) => each.cpuMs()));

async function measured(setup: Setup, work: () => Promise<readonly number[]>) {
  const before = [gatewayMs(setup), setup.databaseMs()] as const;
  const waits = await work();
  // What was put off until after the last reply.
  await delay(SECOND_MS);
  const perTurn = [gatewayMs(setup) - before[0], setup.databaseMs() - before[1]];
  const figures = [
    ...[percentile(waits, 0.5), percentile(waits, 0.99)],
    ...perTurn.map((ms) => ms / waits.length),
  ].map(figure);
  return { figures };
}

/** Of all processes together, so that the database's part can be divided among them. */
async function idleCost(setup: Setup): Promise<string> {
  await delay(SECOND_MS);
  const before = [gatewayMs(setup), setup.databaseMs()] as const;
  await delay(IDLE_MS);
  const [gateways = 0, database = 0] = [
    gatewayMs(setup) - before[0],
    setup.databaseMs() - before[1],
  ].map((ms) => (100 * ms) / IDLE_MS);
  const rss = setup.gateways.slice(1).map((each) => each.rssMb());
  return (
    `Idle, ${setup.name}: ${figure(gateways / setup.gateways.length)} % of a core and ` +
    `${figure(sum(rss) / rss.length)} MB for each process, ${figure(database)} % for the database.`
  );
}

async function onFile(stack: AsyncDisposableStack, peers: Peers): Promise<Setup> {
  const program = stack.use(
    await nanobot(peers, { name: 'one on SQLite', folder: folderOf(), ...UNLIMITED }),
  );
  await fill(join(program.home, 'workspace'));
  const subject = stack.use(program.start());
  await peers.firstPoll(subject.startedAt);
  return { name: program.name, gateways: [subject], workers: [], databaseMs: () => 0 };
}

async function onPostgres(
  stack: AsyncDisposableStack,
  peers: Peers,
  count: number,
): Promise<Setup> {
  const server = stack.use(await startPostgres(['fsync=on']));
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-bench-shared-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  await fill(join(folder, 'workspace'));
  const url = await server.database();
  const config = {
    store: { engine: 'postgres', url: { env: 'DATABASE_URL' } },
    storage: { kind: 'files', path: folder },
  };
  const started = async (role: string) => {
    const options = { name: role, folder: folderOf(), ...UNLIMITED, config };
    const shared = { args: ['--role', role], env: { DATABASE_URL: url } };
    const program = stack.use(await nanobot(peers, { ...options, ...shared }));
    return stack.use(program.start());
  };
  const channels = await started('channels');
  await peers.firstPoll(channels.startedAt);
  const workers: Subject[] = [];
  for (let each = 0; each < count; each += 1) workers.push(await started('workers'));
  const gateways = [channels, ...workers];
  await joined(server, url, gateways.length);
  const name = `1 channels, ${count} ${count === 1 ? 'worker' : 'workers'}`;
  return { name, gateways, workers, databaseMs: () => databaseMs(server) };
}

async function joined(server: PostgresServer, url: string, count: number): Promise<void> {
  for (;;) {
    const [found] = await server.query(url, 'SELECT count(*) AS count FROM nanobot.node');
    if (Number(found?.['count']) === count) return;
    await delay(100);
  }
}

const folderOf = () => process.env['NANOBOT_TEST_PACKAGE'] ?? ROOT;

async function fill(workspace: string): Promise<void> {
  await mkdir(join(workspace, 'records'), { recursive: true });
  const line = (at: number) => `${at}: what was written down on that day, in words that are said\n`;
  const text = Array.from({ length: LINES_PER_FILE }, (_, at) => line(at)).join('');
  for (let each = 0; each < FILES; each += 1) {
    await writeFile(join(workspace, 'records', `${each}.txt`), text);
  }
}

/** Of the server, its living children and those that ended. */
function databaseMs({ folder }: PostgresServer): number {
  const [first = ''] = readFileSync(join(folder, 'data/postmaster.pid'), 'utf8').split('\n');
  const postmaster = Number(first);
  const children = readdirSync('/proc').filter((name) => parentOf(name) === postmaster);
  return cpuMs(postmaster, true) + sum(children.map((pid) => cpuMs(Number(pid))));
}

/** Undefined where it is no process, or ended meanwhile. */
function parentOf(pid: string): number | undefined {
  if (!/^\d+$/.test(pid)) return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}
