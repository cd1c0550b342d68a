// What the kernel does not hold for a whole run: memory and processes together, and what it adds to the
// disk. Looked at again and again while it runs; only where the system tells.

import { statfsSync } from 'node:fs';
import type { Clock } from '../../lib/clock.ts';
import type { ExecLimits } from './limits.ts';
import { descendantsOf, ownBytes, residentBytes } from './process-tree.ts';

export type Excess = 'memory' | 'processes' | 'disk';

export type Watched = {
  readonly pid: number;
  readonly workspace: string | undefined;
  readonly limits: ExecLimits;
};

const LOOK_EVERY_MS = 100;
/** What a file costs beside its content. */
const INODE_BYTES = 4096;
/** The confining programs themselves. */
const OWN_PROCESSES = 3;

/** Calls `over` once, when a limit is passed. */
export function watchResources(
  { pid, workspace, limits }: Watched,
  clock: Clock,
  over: (what: Excess) => void,
): Disposable {
  const before = workspace === undefined ? undefined : usedBytes(workspace);
  const exceeds = (): Excess | undefined => {
    const tree = descendantsOf(pid, limits.maxProcesses + OWN_PROCESSES + 1);
    if (tree.length > limits.maxProcesses + OWN_PROCESSES) return 'processes';
    if (sum(tree, residentBytes) > limits.memoryBytes && sum(tree, ownBytes) > limits.memoryBytes) {
      return 'memory';
    }
    const added = workspace === undefined ? 0 : usedBytes(workspace) - (before ?? 0);
    return added > limits.diskBytes ? 'disk' : undefined;
  };
  let timer = clock.timer(LOOK_EVERY_MS, look);
  function look() {
    const what = exceeds();
    if (what === undefined) timer = clock.timer(LOOK_EVERY_MS, look);
    else over(what);
  }
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
}

/** Of the whole disk: what others write at the same time counts as well. */
function usedBytes(folder: string): number {
  const { blocks, bfree, bsize, files, ffree } = statfsSync(folder);
  return (blocks - bfree) * bsize + (files - ffree) * INODE_BYTES;
}

const sum = (pids: readonly number[], bytesOf: (pid: number) => number) =>
  pids.reduce((total, pid) => total + bytesOf(pid), 0);
