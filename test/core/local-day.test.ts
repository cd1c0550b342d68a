import { afterEach, expect, it } from 'vitest';
import { createLocalDays } from '../../src/lib/time/zone-time.ts';

const HOUR_MS = 3_600_000;
const machine = process.env['TZ'];

afterEach(() => {
  process.env['TZ'] = machine;
});

it.each([
  ['a day of 23 hours', 'Europe/Berlin', '2026-03-29T12:00:00Z', '2026-03-29', 23],
  ['a day of 25 hours', 'Europe/Berlin', '2026-10-25T12:00:00Z', '2026-10-25', 25],
  [
    'a day before one without midnight',
    'America/Sao_Paulo',
    '2018-11-03T12:00:00Z',
    '2018-11-03',
    24,
  ],
  ['a day behind UTC', 'America/New_York', '2026-01-16T03:00:00Z', '2026-01-15', 24],
  ['a day before UTC', 'Pacific/Auckland', '2026-06-30T13:00:00Z', '2026-07-01', 24],
])(
  '%s ends at the same moment for its name and for the machine’s zone',
  (_what, zone, at, day, hours) => {
    const atMs = Date.parse(at);
    const named = createLocalDays()(atMs, zone);
    process.env['TZ'] = zone;
    const own = createLocalDays()(atMs, '');
    const startsAt = createLocalDays()(own.endsAt - hours * HOUR_MS, zone);

    expect([named.day, own.day]).toEqual([day, day]);
    expect(own.endsAt).toBe(named.endsAt);
    expect(startsAt.day).toBe(day);
    expect(createLocalDays()(own.endsAt, zone).day).not.toBe(day);
    expect(createLocalDays()(own.endsAt - 1, '').day).toBe(day);
  },
);
