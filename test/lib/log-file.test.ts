// The log file of a program that leaves as soon as it came.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openLogFile } from '../../src/lib/files/files.ts';
import { createMovableClock } from '../support/movable-clock.ts';

test('a program that stops before its log is open leaves quietly, with its last line', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-log-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const clock = createMovableClock(Date.UTC(2026, 0, 2));
  const log = openLogFile({ folder, clock, keepDays: () => 7 });
  log.write('the port is taken\n');
  await log[Symbol.asyncDispose]();
  expect(await readFile(join(folder, 'nanobot.2026-01-02.log'), 'utf8')).toBe(
    'the port is taken\n',
  );
});
