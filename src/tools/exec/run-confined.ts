// One run of a confined command: started, watched for memory, processes and disk use, and ended
// with all its processes. Its outcome is known only when none of them is left.

import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { lstat, readdir, readFile, statfs } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../kernel/config/environment.ts';
import { inTime } from '../../lib/async.ts';
import { isOver, killGroup, signalProcess, spawnGroup } from '../../lib/process-group.ts';
import { HeadAndTail, type Kept } from '../../lib/text/cut.ts';
import { type Clock, onAbort } from '../../lib/time/clock.ts';
import type { Argv, Confinement, ExecLimits, Sandbox } from './sandbox.ts';

const PAGE_BYTES = 4096;
const KILOBYTE = 1024;

/** All descendants of the process, without itself; at most `atMost`. */
async function descendantsOf(pid: number, atMost: number): Promise<readonly number[]> {
  const found: number[] = [];
  const open = [pid];
  for (let next = open.pop(); next !== undefined && found.length < atMost; next = open.pop()) {
    const tasks = (await orNothing(readdir(`/proc/${next}/task`))) ?? [];
    const texts = await Promise.all(
      tasks.map((task) => orNothing(readFile(childrenFile(next, task), 'utf8'))),
    );
    const children = texts.flatMap(numbersIn);
    found.push(...children);
    open.push(...children);
  }
  return found.slice(0, atMost);
}

const childrenFile = (pid: number, task: string) => `/proc/${pid}/task/${task}/children`;

const numbersIn = (text = '') => text.split(' ').filter(Boolean).map(Number);

export function childrenOf(pid: number): readonly number[] {
  const tasks = read(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  return tasks.flatMap((task) => {
    return numbersIn(read(() => readFileSync(childrenFile(pid, task), 'utf8')));
  });
}

/** Bytes in memory; shared memory counts for each process. */
async function residentBytes(pid: number): Promise<number> {
  const text = (await orNothing(readFile(`/proc/${pid}/statm`, 'utf8'))) ?? '';
  const [, resident = 0, shared = 0] = text.split(' ').map(Number);
  return (resident - shared) * PAGE_BYTES;
}

/** Bytes in memory with its share of shared memory; more expensive than `residentBytes`. */
async function ownBytes(pid: number): Promise<number> {
  const text = await orNothing(readFile(`/proc/${pid}/smaps_rollup`, 'utf8'));
  const kilobytes = text?.match(/^Pss:\s+(\d+)/m)?.[1];
  return kilobytes === undefined ? residentBytes(pid) : Number(kilobytes) * KILOBYTE;
}

/** Processes with this mark in their environment, including detached ones. */
function markedProcesses(mark: string): readonly number[] {
  const all = read(() => readdirSync('/proc')) ?? [];
  return all
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => read(() => readFileSync(`/proc/${name}/environ`, 'latin1'))?.includes(mark))
    .map(Number);
}

const orNothing = <T>(reading: Promise<T>) => reading.catch(() => undefined);

/** A process may end at any moment, or belong to another user. */
function read<T>(reading: () => T): T | undefined {
  try {
    return reading();
  } catch {
    return undefined;
  }
}

// Limits that the kernel does not enforce for a whole run: total memory and processes, and growth
// of the disk. Checked repeatedly while it runs; processes only if the system lists them.

type Excess = 'memory' | 'processes' | 'disk' | 'output';

const LOOK_EVERY_MS = 100;
/** The confining programs themselves. */
const OWN_PROCESSES = 3;

/** Calls `over` once, when a limit is exceeded. */
function watchResources(
  pid: number,
  { limits, confinement: { workspace }, atEachLook }: ConfinedRun,
  clock: Clock,
  over: (what: Excess) => void,
): Disposable {
  const hasFilled = workspace === undefined ? NEVER : diskWatch(workspace, limits.diskBytes, clock);
  const ended = new AbortController();
  let timer = clock.timer(LOOK_EVERY_MS, look);
  async function look() {
    await atEachLook?.();
    const what = (await excessOf(pid, limits)) ?? ((await hasFilled()) ? 'disk' : undefined);
    if (ended.signal.aborted) return;
    if (what === undefined) timer = clock.timer(LOOK_EVERY_MS, look);
    else over(what);
  }
  return {
    [Symbol.dispose]() {
      ended.abort();
      timer[Symbol.dispose]();
    },
  };
}

const NEVER = async () => false;

async function excessOf(pid: number, limits: ExecLimits): Promise<Excess | undefined> {
  const most = limits.maxProcesses + OWN_PROCESSES;
  const tree = await descendantsOf(pid, most + 1);
  if (tree.length > most) return 'processes';
  const sum = async (bytesOf: (pid: number) => Promise<number>) =>
    (await Promise.all(tree.map(bytesOf))).reduce((total, bytes) => total + bytes, 0);
  const isNear = (await sum(residentBytes)) > limits.memoryBytes;
  return isNear && (await sum(ownBytes)) > limits.memoryBytes ? 'memory' : undefined;
}

function diskWatch(workspace: string, mostBytes: number, clock: Clock): () => Promise<boolean> {
  const since = clock.now();
  const start = usedBytes(workspace);
  /** Growth of the disk that others are known to have caused. */
  let ofOthers = 0;
  return async () => {
    const [before, now] = [await start, await usedBytes(workspace)];
    if (before === undefined || now === undefined) return false;
    const grown = now - before;
    if (grown - ofOthers <= mostBytes) return false;
    const changed = await changedBytes(workspace, since, mostBytes);
    ofOthers = Math.max(ofOthers, grown - changed);
    return changed > mostBytes;
  };
}

// How much a program has written to the disk. The disk's own count is cheap and counts everybody;
// only if it has grown too much are the files themselves examined.

/** What a file costs beside its content. */
const INODE_BYTES = 4096;
const BLOCK_BYTES = 512;

/** Of the whole disk; undefined if the folder is gone. */
export async function usedBytes(folder: string): Promise<number | undefined> {
  const found = await statfs(folder).catch(() => undefined);
  if (found === undefined) return undefined;
  const { blocks, bfree, bsize, files, ffree } = found;
  return (blocks - bfree) * bsize + (files - ffree) * INODE_BYTES;
}

/** Of what changed in the folder since then, up to `enough`. */
async function changedBytes(folder: string, since: number, enough: number): Promise<number> {
  const open = [folder];
  let total = 0;
  for (let next = open.pop(); next !== undefined && total <= enough; next = open.pop()) {
    const entries = await readdir(next, { withFileTypes: true }).catch(() => []);
    const parent = next;
    open.push(
      ...entries.filter((each) => each.isDirectory()).map(({ name }) => join(parent, name)),
    );
    for (const { name } of entries) {
      const info = await lstat(join(parent, name)).catch(() => undefined);
      if (info !== undefined && info.ctimeMs >= since)
        total += info.blocks * BLOCK_BYTES + INODE_BYTES;
    }
  }
  return total;
}

// One run of a confined command: started, watched, and ended with everything it has started. Its
// outcome is known only when nothing of it is left.

export type ConfinedRun = {
  readonly command: Argv;
  readonly sandbox: Sandbox;
  readonly confinement: Confinement;
  readonly env: Environment;
  readonly limits: ExecLimits;
  /** Called repeatedly while it runs. */
  atEachLook?(): Promise<void>;
};

export type RunEnding =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'over'; readonly what: Excess }
  /** It could not be started. */
  | { readonly kind: 'not_started'; readonly cause: unknown };

export type RunReport = {
  readonly ending: RunEnding;
  readonly output: Kept;
  readonly errors: Kept;
  readonly tookMs: number;
};

/** Time between asking a program to end and ending it. */
const GRACE_MS = 1000;
/** Time until the group is killed if killing the first process did not end it. */
const LAST_RESORT_MS = 2000;
/** Limits the reading of output that is not kept. */
export const MOST_OUTPUT_BYTES = 1_000_000_000;
const MARK = 'NANOBOT_RUN';
/** Exit code of docker and podman when they failed themselves. */
const NOBODY_KNOWS = 125;

export async function runConfined(
  run: ConfinedRun,
  clock: Clock,
  signal: AbortSignal,
): Promise<RunReport> {
  const begun = clock.monotonic();
  const mark = `${MARK}=${randomUUID()}`;
  const { child, remote } = start(run, mark);
  const output = new HeadAndTail(run.limits.outputBytes);
  const errors = new HeadAndTail(run.limits.outputBytes);
  child.stdout?.on('data', (part: Buffer) => output.push(part));
  child.stderr?.on('data', (part: Buffer) => errors.push(part));
  const left = run.sandbox.endsWithParent || remote !== undefined ? undefined : mark;
  const natural = endOf(child, left);
  const end = () => (remote === undefined ? endTree(child, left) : remote.end());
  const isRemote = remote !== undefined;
  const ending = await supervised(child, run, natural, { isRemote, end, clock, signal });
  const isSurelyOver = ending.kind === 'exit' && ending.code !== NOBODY_KNOWS;
  if (!isSurelyOver) await remote?.gone();
  const tookMs = clock.monotonic() - begun;
  return { ending, output: output.kept, errors: errors.kept, tookMs };
}

function start(run: ConfinedRun, mark: string) {
  const { sandbox } = run;
  const launch = sandbox.launch(run);
  const [name = '', value = ''] = mark.split('=');
  const child = spawnGroup(launch.argv, {
    cwd: launch.cwd,
    env: { ...launch.env, ...(sandbox.endsWithParent ? {} : { [name]: value }) },
    stdio: ['ignore', 'pipe', 'pipe', ...(launch.arguments === undefined ? [] : ['pipe' as const])],
  });
  const channel = child.stdio[3];
  if (channel && 'end' in channel) {
    // If it dies before it has read them, its exit reports that.
    channel.on('error', () => undefined);
    channel.end(launch.arguments);
  }
  return { child, remote: launch.remote };
}

type Supervision = {
  readonly isRemote: boolean;
  readonly end: () => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
};

async function supervised(
  child: ChildProcess,
  run: ConfinedRun,
  natural: Promise<RunEnding>,
  { isRemote, end, clock, signal }: Supervision,
): Promise<RunEnding> {
  const { limits } = run;
  const early = Promise.withResolvers<RunEnding>();
  using _stopping = onAbort(signal, () => {
    // At once: the gateway may be about to exit.
    end();
    early.resolve({ kind: 'stopped' });
  });
  using _deadline = clock.timer(limits.timeoutMs, () => early.resolve({ kind: 'timeout' }));
  using _watch = watched(child, run, clock, (what) => {
    end();
    early.resolve({ kind: 'over', what });
  });
  const first = await Promise.race([natural, early.promise]);
  if (first.kind === 'timeout') await askToEnd(child, natural, clock, isRemote);
  if (!isOver(child)) end();
  using _lastResort = clock.timer(LAST_RESORT_MS, () => killGroup(child));
  await natural;
  return first;
}

/** Calls `over` at most once. */
function watched(
  child: ChildProcess,
  run: ConfinedRun,
  clock: Clock,
  over: (what: Excess) => void,
): Disposable {
  let bytes = 0;
  const count = (part: Buffer) => {
    const before = bytes;
    bytes += part.length;
    if (before <= MOST_OUTPUT_BYTES && bytes > MOST_OUTPUT_BYTES) over('output');
  };
  child.stdout?.on('data', count);
  child.stderr?.on('data', count);
  const { pid } = child;
  if (pid === undefined) return { [Symbol.dispose]: () => undefined };
  return watchResources(pid, run, clock, over);
}

/** Lets programs save their state. */
async function askToEnd(
  child: ChildProcess,
  natural: Promise<unknown>,
  clock: Clock,
  isRemote: boolean,
): Promise<void> {
  if (child.pid === undefined) return;
  // The local process of a remote run passes the signal on.
  const asked = isRemote ? [child.pid] : await descendantsOf(child.pid, 1000);
  for (const pid of asked) signalProcess(pid, 'SIGTERM');
  if (!isRemote && process.platform !== 'linux') signalProcess(-child.pid, 'SIGTERM');
  await inTime(clock, GRACE_MS, natural);
}

/**
 * In a sandbox with its own process table the first process ends all others, and its starter sees
 * the end when none is left. Elsewhere: the group, and the processes that left it.
 */
function endTree(child: ChildProcess, mark: string | undefined): void {
  const { pid } = child;
  if (pid === undefined || isOver(child)) return;
  const first = mark === undefined ? childrenOf(pid) : [];
  if (first.length > 0) for (const each of first) signalProcess(each, 'SIGKILL');
  else killGroup(child);
  if (mark !== undefined) endMarked(mark);
}

function endMarked(mark: string): void {
  for (const pid of markedProcesses(mark)) signalProcess(pid, 'SIGKILL');
}

function endOf(child: ChildProcess, mark: string | undefined): Promise<RunEnding> {
  return new Promise((resolve) => {
    child.on('error', (cause) => resolve({ kind: 'not_started', cause }));
    child.on('exit', () => {
      if (mark === undefined) return;
      // A remaining process may hold the output open.
      killGroup(child);
      endMarked(mark);
    });
    child.on('close', (code, signal) => {
      if (signal !== null) return resolve({ kind: 'signal', signal });
      resolve(endingOf(code ?? 0));
    });
  });
}

/** A shell and bubblewrap report a program's signal as 128 plus its number. */
function endingOf(code: number): RunEnding {
  const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128);
  return signal === undefined ? { kind: 'exit', code } : { kind: 'signal', signal: signal[0] };
}
