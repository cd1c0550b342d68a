// What the kernel does not hold for a whole run: memory and processes together, and what it adds to the
// disk. Looked at again and again while it runs; processes only where the system tells of them.

import type { Clock } from '../../lib/clock.ts';
import { changedBytes, usedBytes } from './disk-use.ts';
import type { ExecLimits } from './limits.ts';
import { descendantsOf, ownBytes, residentBytes } from './process-tree.ts';

export type Excess = 'memory' | 'processes' | 'disk' | 'output';

export type Watched = {
  readonly pid: number;
  readonly workspace: string | undefined;
  readonly limits: ExecLimits;
  readonly atEachLook: (() => Promise<void>) | undefined;
};

const LOOK_EVERY_MS = 100;
/** The confining programs themselves. */
const OWN_PROCESSES = 3;

/** Calls `over` once, when a limit is passed. */
export function watchResources(
  { pid, workspace, limits, atEachLook }: Watched,
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
