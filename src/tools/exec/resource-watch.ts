// What the kernel does not hold for a whole run: memory and processes together, and what it adds to the
// disk. Looked at again and again while it runs; processes only where the system tells of them.

import { lstat, readdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/time/clock.ts';
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

// How much a program has put on the disk. The disk's own count is cheap and counts everybody; only where
// it has grown too much the files themselves are looked at.

/** What a file costs beside its content. */
const INODE_BYTES = 4096;
const BLOCK_BYTES = 512;

/** Of the whole disk; undefined where the folder is gone. */
export async function usedBytes(folder: string): Promise<number | undefined> {
  const found = await statfs(folder).catch(() => undefined);
  if (found === undefined) return undefined;
  const { blocks, bfree, bsize, files, ffree } = found;
  return (blocks - bfree) * bsize + (files - ffree) * INODE_BYTES;
}

/** Of what was changed in the folder since then, up to `enough`. */
export async function changedBytes(folder: string, since: number, enough: number): Promise<number> {
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
