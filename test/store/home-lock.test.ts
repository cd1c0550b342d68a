import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { holdHome } from '../../src/kernel/bus/store/home-lock.ts';
import { HomeLockedError } from '../../src/kernel/bus/store/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const CHILD = fileURLToPath(new URL('lock-child.ts', import.meta.url));

describe('the lock of a home', () => {
  let folder = '';
  let path = '';
  beforeEach(async () => {
    folder = await temporaryFolder();
    path = join(folder, 'nanobot.lock');
  });
  async function startHolder() {
    const child = spawn(process.execPath, [CHILD, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    return {
      pid: child.pid,
      async end(signal: 'SIGKILL' | 'SIGTERM') {
        child.kill(signal);
        await once(child, 'exit');
      },
    };
  }

  it('is refused while another process holds it, and says who that is', async () => {
    const holder = await startHolder();
    const error = await holdHome(path, { pid: process.pid }).catch((reason) => reason);
    expect(error).toBeInstanceOf(HomeLockedError);
    expect(error.holder).toEqual({ pid: holder.pid, address: 'http://127.0.0.1:18790' });
    expect(error.message).toContain(`pid ${holder.pid}`);
    // The refusal did not loosen the lock.
    await expect(holdHome(path, {})).rejects.toThrow(HomeLockedError);
    await holder.end('SIGTERM');
  });

  it('is free at once when its holder was killed with -9', async () => {
    const holder = await startHolder();
    await holder.end('SIGKILL');
    await using _lock = await holdHome(path, { pid: process.pid });
    await expect(holdHome(path, {})).rejects.toMatchObject({ holder: { pid: process.pid } });
  });

  it('is given back when disposed, and is for its user alone', async () => {
    const first = await holdHome(path, { pid: 1 });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await first[Symbol.asyncDispose]();
    const second = await holdHome(path, { pid: 2 });
    await second[Symbol.asyncDispose]();
  });

  it('refuses a second hold in the same process', async () => {
    await using _first = await holdHome(path, { pid: 1 });
    await expect(holdHome(path, { pid: 2 })).rejects.toThrow(HomeLockedError);
    await expect(startHolderExpectingRefusal(path)).resolves.toBe(1);
  });
});

async function startHolderExpectingRefusal(path: string): Promise<number | null> {
  const child = spawn(process.execPath, [CHILD, path], { stdio: 'ignore' });
  const [code] = await once(child, 'exit');
  return code;
}
