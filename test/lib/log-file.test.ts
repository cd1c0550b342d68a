// The log file keeps the lines of a program that leaves at once, and of a disk that is full for a while.
// Lines are made and written behind the work that they are about.

import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createAfterwork } from '../../src/lib/async.ts';
import { openLogFile } from '../../src/lib/files/files.ts';
import { createLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('a program that stops at once leaves its last line', async () => {
  const folder = await temporaryFolder();
  const clock = createMovableClock(Date.UTC(2026, 0, 2));
  const afterwork = createAfterwork(clock);
  const log = openLogFile({ folder, clock, keepDays: () => 7, ...afterwork });
  log.write('the port is taken\n');
  afterwork[Symbol.dispose]();
  expect(await readFile(join(folder, 'nanobot.2026-01-02.log'), 'utf8')).toBe(
    'the port is taken\n',
  );
});

test('lines that could not be written are written with the next one', async () => {
  const folder = await temporaryFolder();
  const clock = createMovableClock(Date.UTC(2026, 0, 2));
  using afterwork = createAfterwork(clock);
  const log = openLogFile({ folder, clock, keepDays: () => 7, ...afterwork });
  const path = join(folder, 'nanobot.2026-01-02.log');
  await mkdir(path);
  log.write('one\n');
  await clock.advance(100);
  await rmdir(path);
  log.write('two\n');
  await clock.advance(100);
  expect(await readFile(path, 'utf8')).toBe('one\ntwo\n');
});

test('a line that is made later tells when it happened', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 2) });
  onTestFinished(() => void vi.useRealTimers());
  const clock = createMovableClock();
  using afterwork = createAfterwork(clock);
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLogger({ level: 'info', destination, redact: (line) => line, ...afterwork });
  log.child({ channel: 'telegram' }).info('turn ended', { attempt: 1 });
  log.debug('turn closed');
  vi.setSystemTime(Date.UTC(2026, 0, 3));
  expect(lines).toEqual([]);
  await clock.advance(100);
  expect(lines).toEqual([
    '{"level":"info","time":"2026-01-02T00:00:00.000Z","channel":"telegram","attempt":1,"msg":"turn ended"}\n',
  ]);
});

test('a program that exits without closing its log leaves its last line', async () => {
  const folder = await temporaryFolder();
  const async = import.meta.resolve('../../src/lib/async.ts');
  const files = import.meta.resolve('../../src/lib/files/files.ts');
  const logger = import.meta.resolve('../../src/lib/logger.ts');
  const clock = import.meta.resolve('../../src/lib/time/clock.ts');
  const program = `
    const { createAfterwork } = await import('${async}');
    const { openLogFile } = await import('${files}');
    const { createLogger } = await import('${logger}');
    const { systemClock: clock } = await import('${clock}');
    const { later } = createAfterwork(clock);
    const destination = openLogFile({ folder: process.argv[1], clock, keepDays: () => 7, later });
    const log = createLogger({ level: 'info', destination, redact: (line) => line, later });
    log.error('nobody expected this');
    process.exit(1);`;
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program, folder]);
  await expect(run).rejects.toMatchObject({ code: 1 });
  const [name = ''] = await readdir(folder);
  expect(await readFile(join(folder, name), 'utf8')).toContain('"msg":"nobody expected this"}\n');
});
