// A memory limit of the kernel for a process, as a container has one: a control group of the first or
// the second version, where this machine lets its administrator make one.

import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface MemoryLimit extends AsyncDisposable {
  /** Processes that it starts from now on are held to the limit too. */
  hold(pid: number): void;
  /** How often the kernel killed a process in it for memory. */
  kills(): number;
}

const ROOT = '/sys/fs/cgroup';
const V1 = {
  folder: join(ROOT, 'memory'),
  limit: 'memory.limit_in_bytes',
  events: 'memory.oom_control',
};
const V2 = { folder: ROOT, limit: 'memory.max', events: 'memory.events' };

/** Undefined where this machine has no such limits to give. Its processes must be gone when it is closed. */
export function makeMemoryLimit(bytes: number): MemoryLimit | undefined {
  for (const { folder, limit, events } of [V1, V2]) {
    const group = join(folder, `nanobot-test-${process.pid}-${bytes}`);
    try {
      mkdirSync(group);
    } catch {
      continue;
    }
    try {
      writeFileSync(join(group, limit), String(bytes));
    } catch {
      rmdirSync(group);
      continue;
    }
    return {
      hold: (pid) => writeFileSync(join(group, 'cgroup.procs'), String(pid)),
      kills: () => Number(/^oom_kill (\d+)$/m.exec(readFileSync(join(group, events), 'utf8'))?.[1]),
      async [Symbol.asyncDispose]() {
        rmdirSync(group);
      },
    };
  }
  return undefined;
}
