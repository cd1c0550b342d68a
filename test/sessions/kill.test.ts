import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { sessionKey } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { campaign } from '../support/campaign.ts';
import { createSessionFolder } from './session-folder.ts';

const KEY = sessionKey('crash:1');
const ROUNDS = campaign({ short: 3, full: 60 });
const APPENDS_PER_ROUND = 40;

const numberOf = (entry: TranscriptEntry) =>
  entry.role === 'user' ? Number.parseInt(entry.text, 10) : -1;

/** Runs the writer and kills it, without warning, after some acknowledged appends. */
async function appendUntilKilled(
  { folder, state }: { readonly folder: string; readonly state: string },
  start: number,
  appends: number,
): Promise<number> {
  const script = new URL('./append-child.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, folder, state, String(start)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let acknowledged = start - 1;
  for await (const line of createInterface({ input: child.stdout })) {
    acknowledged = Number(line);
    if (acknowledged >= start + appends) child.kill('SIGKILL');
  }
  await exited;
  return acknowledged;
}

test('a writer killed in the middle of its appends loses nothing it acknowledged and doubles nothing', async () => {
  const { folder, state, open, read } = await createSessionFolder();
  let next = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const acknowledged = await appendUntilKilled(
      { folder, state },
      next,
      APPENDS_PER_ROUND + round * 7,
    );
    await using store = open();
    const numbers = (await read(KEY)).map(numberOf);
    expect(numbers).toEqual(Array.from(numbers, (_, index) => index));
    expect(numbers.length).toBeGreaterThan(acknowledged);
    expect(numbers.length).toBeLessThanOrEqual(acknowledged + 2);
    expect(numberOf((await store.load(KEY)).at(-1) ?? { role: 'reset', at: 0 })).toBe(
      numbers.length - 1,
    );
    next = numbers.length;
  }
});
