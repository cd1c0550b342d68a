// When messages came, as the model reads it: by their own records, so that it never changes.

import { expect, it } from 'vitest';
import { turnId } from '../../src/kernel/message/ids.ts';
import { createTimeStamps, withTimes } from '../../src/kernel/message/late.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';

const NOON = Date.UTC(2026, 10, 21, 12);
const stamps = createTimeStamps();

const said = (turn: number, text: string, seconds: number): TranscriptEntry => ({
  role: 'user',
  turnId: turnId(`s#${turn}`),
  text,
  at: NOON + seconds * 1000,
});
const shown = (entries: readonly TranscriptEntry[], zone = 'UTC') =>
  withTimes(entries, stamps(zone)).map((entry) => ('text' in entry ? entry.text : ''));

it('each turn begins with its time, and a message of another minute has its own', () => {
  const entries = [said(1, 'one', 0), said(1, 'two', 1), said(1, 'three', 60), said(2, 'four', 61)];
  expect(shown(entries)).toEqual([
    '[Sat 2026-11-21 12:00]\none',
    'two',
    '[Sat 2026-11-21 12:01]\nthree',
    '[Sat 2026-11-21 12:01]\nfour',
  ]);
});

it('what went before changes no time, and the zone is the one of the person', () => {
  const later = [said(2, 'four', 61)];
  expect(shown([said(1, 'one', 61), ...later]).at(-1)).toBe(shown(later).at(-1));
  expect(shown(later, 'Asia/Tokyo')).toEqual(['[Sat 2026-11-21 21:01]\nfour']);
  expect(shown([said(1, ' ', 0)])).toEqual([' ']);
});
