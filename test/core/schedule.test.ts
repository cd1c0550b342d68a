// How people write times, intervals and quiet hours, and which answers of a job are none.

import { describe, expect, test } from 'vitest';
import {
  asksForSomething,
  jobName,
  parseHead,
  readReport,
} from '../../src/features/schedule/rules/job.ts';
import { readSchedule } from '../../src/features/schedule/rules/schedule.ts';
import { quietHoursOf, quietUntil } from '../../src/lib/time/zone-time.ts';

const NOW = Date.parse('2026-01-15T12:00:00Z');
const ZONE = 'America/New_York';

test.each([
  ['in 20m', '2026-01-15T12:20:00Z'],
  ['1h30m', '2026-01-15T13:30:00Z'],
  ['2 days', '2026-01-17T12:00:00Z'],
  ['08:30', '2026-01-15T13:30:00Z'],
  ['7:00', '2026-01-16T12:00:00Z'],
  ['2026-02-01 09:00', '2026-02-01T14:00:00Z'],
  ['2026-02-01T09:00', '2026-02-01T14:00:00Z'],
  ['2026-02-01T09:00+01:00', '2026-02-01T08:00:00Z'],
])('"%s" is a moment by the clock of the person', (at, moment) => {
  expect(readSchedule({ at }, ZONE, NOW)).toEqual({ kind: 'at', at: Date.parse(moment) });
});

test.each(['2026-02-30 09:00', '25:00', '8', 'noon', '2026-1-1', ''])(
  '"%s" is refused with a valid form',
  (at) => {
    expect(() => readSchedule({ at }, ZONE, NOW)).toThrow(/Write "2026-01-16 07:00"/);
  },
);

test('an interval without a unit counts seconds', () => {
  const every = (text: string) => readSchedule({ every: text }, ZONE, NOW);
  expect(every('3600')).toEqual({ kind: 'every', everyMs: 3_600_000, anchor: NOW });
  expect(() => every('30')).toThrow(/from 1m to 366d/);
});

describe('what is typed behind /cron add', () => {
  test.each([
    ['every 2h: look: twice', { kind: 'ask', every: 'every 2h', text: 'look: twice' }],
    ['at 08:00: wake me', { kind: 'ask', at: '08:00', text: 'wake me' }],
    ['say in 20m: tea', { kind: 'say', at: 'in 20m', text: 'tea' }],
    ['0 8 * * 1-5: report', { kind: 'ask', cron: '0 8 * * 1-5', text: 'report' }],
    ['tomorrow: report', undefined],
    ['every 2h', undefined],
  ])('"%s" is read', (typed, wish) => {
    expect(parseHead(typed)).toEqual(wish);
  });
});

test.each([
  ['[SILENT]', false, undefined],
  ['**[SILENT]**.', false, undefined],
  ['HEARTBEAT_OK', false, undefined],
  ['HEARTBEAT_OK. All is well, nothing was due.', true, undefined],
  ['Nothing due. HEARTBEAT_OK', true, undefined],
  ['The oven burns.\n[SILENT]', false, 'The oven burns.'],
  [`HEARTBEAT_OK ${'but '.repeat(60)}fire`, true, `${'but '.repeat(60)}fire`],
  ['The token [SILENT] is quoted here.', false, 'The token [SILENT] is quoted here.'],
])('of the answer "%s" there is left what people need to hear', (answer, isHeartbeat, text) => {
  const report = readReport(answer, isHeartbeat);
  expect(report.kind === 'text' ? report.text : undefined).toBe(text);
});

test.each([
  ['', false],
  ['# Title\n\n<!-- a\n- b -->\n- [ ]\n* \n- [x] done\n---', false],
  ['<!-- never closed\n- do it', false],
  ['# Title\n- [ ] Call Ann', true],
  ['Every morning: weather', true],
  ['1. Look', true],
])('HEARTBEAT.md %j asks for something: %s', (file, expected) => {
  expect(asksForSomething(file)).toBe(expected);
});

describe('quiet hours', () => {
  test.each([
    ['22:00-07:00', '22:00-07:00'],
    [' 9:00 – 7:30', '09:00-07:30'],
    ['OFF', 'off'],
    ['22-7', undefined],
    ['25:00-07:00', undefined],
  ])('"%s" is read as %s', (typed, hours) => {
    expect(quietHoursOf(typed)).toBe(hours);
  });

  test.each([
    ['in the night', '2026-01-15T23:00:00Z', '2026-01-16T06:00:00Z'],
    ['in the morning', '2026-01-16T05:59:30Z', '2026-01-16T06:00:00Z'],
    ['by day', '2026-01-16T06:00:00Z', undefined],
    ['in a short night', '2026-03-28T23:00:00Z', '2026-03-29T05:00:00Z'],
    ['in a long night', '2026-10-24T22:00:00Z', '2026-10-25T06:00:00Z'],
  ])('%s end as the clock on the wall says', (_when, now, end) => {
    const until = quietUntil(Date.parse(now), '22:00-07:00', 'Europe/Berlin');
    expect(until).toBe(end === undefined ? undefined : Date.parse(end));
  });

  test('end also where their last hour is skipped', () => {
    const until = quietUntil(Date.parse('2026-03-29T00:30:00Z'), '22:00-02:30', 'Europe/Berlin');
    expect(until).toBe(Date.parse('2026-03-29T01:00:00Z'));
  });
});

test('a name of a job holds no markup', () => {
  expect(jobName('**[Bold](https://evil.test)** `x`\n# y ☕', '')).toBe(
    'Bold (https://evil.test) x y ☕',
  );
  expect(() => jobName('***', '')).toThrow(/name/);
});
