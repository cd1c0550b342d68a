// Which processes of this machine a run has, as Linux tells in /proc; elsewhere nobody can say.

import { readdirSync, readFileSync } from 'node:fs';

const PAGE_BYTES = 4096;
const KILOBYTE = 1024;

/** All that descend from the process, itself left out; no more than `atMost`. */
export function descendantsOf(pid: number, atMost: number): readonly number[] {
  const found: number[] = [];
  const open = [pid];
  for (let next = open.pop(); next !== undefined && found.length < atMost; next = open.pop()) {
    const children = childrenOf(next);
    found.push(...children);
    open.push(...children);
  }
  return found.slice(0, atMost);
}

export function childrenOf(pid: number): readonly number[] {
  const tasks = read(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  return tasks.flatMap((task) => {
    const text = read(() => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8')) ?? '';
    return text.split(' ').filter(Boolean).map(Number);
  });
}

/** Bytes in memory; what processes share counts for each of them. */
export function residentBytes(pid: number): number {
  const text = read(() => readFileSync(`/proc/${pid}/statm`, 'utf8')) ?? '';
  const [, resident = 0, shared = 0] = text.split(' ').map(Number);
  return (resident - shared) * PAGE_BYTES;
}

/** Bytes in memory, its part of what is shared; costs more than `residentBytes`. */
export function ownBytes(pid: number): number {
  const text = read(() => readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
  const kilobytes = text?.match(/^Pss:\s+(\d+)/m)?.[1];
  return kilobytes === undefined ? residentBytes(pid) : Number(kilobytes) * KILOBYTE;
}

/** Processes of ours with this in their environment, also those that detached themselves. */
export function markedProcesses(mark: string): readonly number[] {
  const all = read(() => readdirSync('/proc')) ?? [];
  return all
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => read(() => readFileSync(`/proc/${name}/environ`, 'latin1'))?.includes(mark))
    .map(Number);
}

/** A process may end at any moment, or not be ours. */
function read<T>(reading: () => T): T | undefined {
  try {
    return reading();
  } catch {
    return undefined;
  }
}
