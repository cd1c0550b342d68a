// The log file keeps the lines of a program that leaves at once, and of a disk that is full for a while.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { openLogFile } from '../../src/lib/files/files.ts';
import { createMovableClock } from '../support/movable-clock.ts';

test('a program that stops at once leaves its last line', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-log-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const clock = createMovableClock(Date.UTC(2026, 0, 2));
  const log = openLogFile({ folder, clock, keepDays: () => 7 });
  log.write('the port is taken\n');
  log[Symbol.dispose]();
  expect(await readFile(join(folder, 'nanobot.2026-01-02.log'), 'utf8')).toBe(
    'the port is taken\n',
  );
});

test('lines that could not be written are written with the next one', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-log-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const clock = createMovableClock(Date.UTC(2026, 0, 2));
  using log = openLogFile({ folder, clock, keepDays: () => 7 });
  const path = join(folder, 'nanobot.2026-01-02.log');
  await mkdir(path);
  log.write('one\n');
  await clock.advance(100);
  await rmdir(path);
  log.write('two\n');
  await clock.advance(100);
  expect(await readFile(path, 'utf8')).toBe('one\ntwo\n');
});

test('a program that exits without closing its log leaves its last line', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-log-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const files = import.meta.resolve('../../src/lib/files/files.ts');
  const clock = import.meta.resolve('../../src/lib/time/clock.ts');
  const program = `
    const { openLogFile } = await import('${files}');
    const { systemClock: clock } = await import('${clock}');
    const log = openLogFile({ folder: process.argv[1], clock, keepDays: () => 7 });
    log.write('nobody expected this\\n');
    process.exit(1);`;
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program, folder]);
  await expect(run).rejects.toMatchObject({ code: 1 });
  const [name = ''] = await readdir(folder);
  expect(await readFile(join(folder, name), 'utf8')).toBe('nobody expected this\n');
});
