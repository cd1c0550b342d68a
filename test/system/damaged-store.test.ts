// A store of messages that a disk has damaged: where the owner wants it, the gateway does not start on
// it and take messages in that nobody would answer, and the doctor names it and rebuilds it.

import { mkdir, open, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Finding } from '../../src/cli/doctor/machine-checks.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { runNanobot, temporaryHome } from '../cli/run-nanobot.ts';

const PAGE_BYTES = 4096;

/** A home that was used: conversations, and a store of many pages. */
async function usedHome() {
  const home = await temporaryHome();
  await home.writeConfig({ version: 1, gateway: { port: 0 }, store: { onDamage: 'stop' } });
  await mkdir(join(home.path, 'sessions'));
  await writeFile(join(home.path, 'sessions', 'telegram.default.700.2026-01-02.jsonl'), '{}\n');
  const path = join(home.path, 'state.db');
  const store = await openEmbeddedStore({ path, clock: systemClock, log: silentLogger });
  const rows = store.scope('rows');
  for (let index = 0; index < 1000; index += 1) await rows.set(`row ${index}`, 'x'.repeat(800));
  await store[Symbol.asyncDispose]();
  return { ...home, store: path };
}

async function overwritePage(path: string): Promise<void> {
  const { size } = await stat(path);
  const file = await open(path, 'r+');
  const at = Math.floor(size / PAGE_BYTES / 2) * PAGE_BYTES;
  await file.write(Buffer.alloc(PAGE_BYTES, 0x55), 0, PAGE_BYTES, at);
  await file.close();
}

const halve = async (path: string) =>
  truncate(path, Math.floor((await stat(path)).size / PAGE_BYTES / 2) * PAGE_BYTES);

it.each([
  ['has a damaged page', 'is damaged', overwritePage],
  ['was cut off', 'is damaged', halve],
  ['was emptied', 'is empty', (path: string) => truncate(path, 0)],
])(
  'a store that %s is refused at the start where it is to stop, and found by the doctor',
  async (_, what, damage) => {
    await using home = await usedHome();
    const storeFinding = async () => {
      const { stdout } = await runNanobot(['doctor', '--json'], { home: home.path });
      return (JSON.parse(stdout) as readonly Finding[]).find(({ check }) => check === 'store');
    };
    expect(await storeFinding()).toMatchObject({
      level: 'ok',
      text: expect.stringMatching(/intact/),
    });
    await damage(home.store);
    const before = (await stat(home.store)).size;
    const { code, stderr } = await runNanobot(['gateway'], {
      home: home.path,
      // Where it starts all the same, the test fails instead of waiting.
      onOutput: (printed, interrupt) => printed.includes('Ctrl+C') && interrupt(),
    });
    expect(code).toBe(1);
    expect(stderr).toContain(`${home.store} ${what}`);
    expect(stderr).toContain('doctor --fix');
    expect(await storeFinding()).toMatchObject({
      level: 'fail',
      text: expect.stringContaining(what),
      remedy: expect.stringContaining('nanobot doctor --fix'),
    });
    expect((await stat(home.store)).size).toBe(before);
  },
);
