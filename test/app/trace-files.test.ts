// traces/ in the home: what is written, how it is bounded, and that words can be forgotten there too.

import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { TraceRecord } from '../../src/features/modes/trace-files.ts';
import { createTraceFiles } from '../../src/features/modes/trace-files.ts';
import { sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const DAY_MS = 86_400_000;

it('keeps traces by the day, without secrets, for as long as logs, and forgets in them', async () => {
  const traces = await temporaryFolder();
  const clock = createMovableClock();
  const live = {
    redact: (text: string) => text.replaceAll('SECRET', '[redacted]'),
    config: { logging: { keepDays: 14 } },
  } as unknown as Parameters<typeof createTraceFiles>[0]['live'];
  const files = createTraceFiles({ traces: join(traces, 'new'), live, clock, log: silentLogger });
  const record = (chat: string, asked: string): TraceRecord => ({
    kind: 'route',
    at: clock.now(),
    session: sessionKey(chat),
    turnId: turnId(`${chat}#1`),
    model: 'router',
    durationMs: 5,
    by: 'json',
    asked,
    outcome: 'respond',
  });
  const none = () => false;
  files.write(record('telegram:1', 'my SECRET garden'));
  files.write(record('telegram:1#7', 'my garden'));
  files.write(record('telegram:2', 'another garden'));
  await files.forget([], none);
  const path = join(traces, 'new', '2026-01-15.jsonl');
  expect(await readFile(path, 'utf8')).toContain('my [redacted] garden');
  expect(await files.forget(['telegram:1'], (text) => text.includes('garden'))).toBe(2);
  const left = (await readFile(path, 'utf8')).trim().split('\n');
  expect(left.map((line) => JSON.parse(line))).toMatchObject([{ asked: 'another garden' }]);
  await writeFile(path, 'x'.repeat(10_000_000));
  files.write(record('telegram:1', 'too much'));
  await files.forget([], none);
  expect((await readFile(path, 'utf8')).length).toBe(10_000_000);
  await clock.advance(15 * DAY_MS);
  files.write(record('telegram:1', 'later'));
  await files.forget([], none);
  expect(await readdir(join(traces, 'new'))).toEqual(['2026-01-30.jsonl']);
});
