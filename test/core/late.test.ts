import { describe, expect, it } from 'vitest';
import { lateNote, questionOf, saidAt, sentNote } from '../../src/kernel/message/late.ts';

const NOON = Date.UTC(2026, 0, 15, 12);
const MINUTE = 60_000;
const asked = (minutesAgo: number, text = 'is it *raining*?') =>
  questionOf({ sentAt: NOON - minutesAgo * MINUTE, receivedAt: NOON, text });

describe('a late answer', () => {
  it('names the question and its time, as the person who asked sees the clock', () => {
    expect(lateNote(asked(57), NOON, 'UTC', false)).toBe(
      'You asked at 11:03:\n> `is it *raining*?`',
    );
    expect(lateNote(asked(57), NOON, 'UTC', true)).toBe('You asked at 11:03:');
    const question = { ...asked(57), timeZone: 'Asia/Tokyo' };
    expect(lateNote(question, NOON, 'UTC', true)).toBe('You asked at 20:03:');
  });

  it('names the day where that was another one', () => {
    const note = lateNote(asked(24 * 60), NOON, 'UTC', true);
    expect(note).toBe('You asked on 2026-01-14 at 12:00:');
  });

  it('cuts a long question and shows nothing in it as markup', () => {
    const note = lateNote(asked(57, `a\`b\n${'x'.repeat(5000)}`), NOON, 'UTC', false);
    expect(note.length).toBeLessThan(250);
    expect(note.split('\n')).toHaveLength(2);
    expect(note.match(/`/g)).toHaveLength(2);
  });
});

describe('a message that waited', () => {
  it('says when it was sent, after ten minutes', () => {
    const sent = (minutes: number) => ({ sentAt: NOON - minutes * MINUTE, receivedAt: NOON });
    expect(sentNote(sent(10), NOON, 'UTC')).toBeUndefined();
    expect(sentNote(sent(11), NOON, 'UTC')).toBe('[sent at 11:49]');
    expect(sentNote({ sentAt: NOON, receivedAt: NOON }, NOON + 11 * MINUTE, 'UTC')).toBe(
      '[sent at 12:00]',
    );
  });

  it('is not believed to come from the future or from another year', () => {
    expect(saidAt({ sentAt: NOON + 1, receivedAt: NOON })).toBe(NOON);
    expect(saidAt({ sentAt: 1, receivedAt: NOON })).toBe(NOON);
  });
});
