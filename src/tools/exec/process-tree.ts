// Which processes of this machine a run has, as Linux tells in /proc; elsewhere nobody can say. What is
// looked at while it runs is read in the background; what ends it at once cannot wait for that.

import { readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';

const PAGE_BYTES = 4096;
const KILOBYTE = 1024;

/** All that descend from the process, itself left out; no more than `atMost`. */
export async function descendantsOf(pid: number, atMost: number): Promise<readonly number[]> {
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

/** Bytes in memory; what processes share counts for each of them. */
export async function residentBytes(pid: number): Promise<number> {
  const text = (await orNothing(readFile(`/proc/${pid}/statm`, 'utf8'))) ?? '';
  const [, resident = 0, shared = 0] = text.split(' ').map(Number);
  return (resident - shared) * PAGE_BYTES;
}

/** Bytes in memory, its part of what is shared; costs more than `residentBytes`. */
export async function ownBytes(pid: number): Promise<number> {
  const text = await orNothing(readFile(`/proc/${pid}/smaps_rollup`, 'utf8'));
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

const orNothing = <T>(reading: Promise<T>) => reading.catch(() => undefined);

/** A process may end at any moment, or not be ours. */
function read<T>(reading: () => T): T | undefined {
  try {
    return reading();
  } catch {
    return undefined;
  }
}
