// How people write times, intervals and quiet hours, and which answers of a job are none.

import { describe, expect, test } from 'vitest';
import {
  asksForSomething,
  jobName,
  parseHead,
  readReport,
} from '../../src/features/schedule/rules/job.ts';
import { readSchedule } from '../../src/features/schedule/rules/schedule.ts';
import { quietHoursSchema } from '../../src/features/schedule/settings.ts';
import { quietHoursOf, quietUntil } from '../../src/lib/time/quiet-hours.ts';

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
    ['sun-thu 22:00-7:00 ,FRI - Sat 23:30-9:00', 'Sun-Thu 22:00-07:00, Fri-Sat 23:30-09:00'],
    ['sat 0:00-12:00', 'Sat 00:00-12:00'],
    ['22-7', undefined],
    ['', undefined],
    ['Sun-Thu', undefined],
    ['Sonntag 22:00-07:00', undefined],
    ['22:00-07:00,', undefined],
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

  const BY_DAY = 'Sun-Thu 22:00-07:00, Fri-Sat 23:30-09:00';
  test.each([
    ['on a Thursday evening', '2026-01-15T22:30', '2026-01-16T07:00'],
    ['not yet on a Friday', '2026-01-16T22:30', undefined],
    ['on a Friday night', '2026-01-16T23:30', '2026-01-17T09:00'],
    ['on a Saturday morning', '2026-01-17T08:59', '2026-01-17T09:00'],
    ['on a Sunday morning, after the Saturday', '2026-01-18T08:00', '2026-01-18T09:00'],
    ['on a Monday morning, after the Sunday', '2026-01-19T06:00', '2026-01-19T07:00'],
    ['no more on a Monday', '2026-01-19T08:00', undefined],
  ])('by weekday, %s', (_when, now, end) => {
    expect(quietUntil(Date.parse(`${now}Z`), BY_DAY, 'UTC')).toBe(
      end === undefined ? undefined : Date.parse(`${end}Z`),
    );
  });

  test('of two days that follow each other end with the second, and without an end after a week', () => {
    const night = Date.parse('2026-01-17T23:00Z');
    const until = (quiet: string) => quietUntil(night, quiet, 'UTC');
    expect(until('Sat 20:00-00:00, Sun 00:00-23:00')).toBe(Date.parse('2026-01-18T23:00Z'));
    expect(until('00:00-12:00, 12:00-00:00')).toBe(Date.parse('2026-01-24T23:00Z'));
    expect(until('Sat 22:00-22:00')).toBeUndefined();
  });

  test('are written in the configuration as they are stored', () => {
    for (const hours of ['', '22:00-07:00', BY_DAY, 'Fri-Mon 00:00-09:00'])
      expect(quietHoursSchema.parse(hours)).toBe(hours);
    for (const hours of [
      'off',
      'Sun-Thu',
      'sun 22:00-07:00',
      '22:00-07:00,23:00-08:00',
      '24:00-07:00',
    ])
      expect(quietHoursSchema.safeParse(hours).success).toBe(false);
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
