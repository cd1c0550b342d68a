import { describe, expect, test } from 'vitest';
import { takenUp } from '../../../src/agent/rules/turn-closing.ts';
import { callId, messageId, turnId } from '../../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../../src/kernel/message/transcript.ts';
import {
  carryOver,
  isRotationDue,
  startsTurn,
  windowOf,
} from '../../../src/kernel/sessions/rules/carry.ts';
import { turnEntries } from '../../contract/session-store.ts';
import { userEntry } from '../../contract/user-entry.ts';

const POLICY = {
  rotationSizeBytes: 1000,
  rotationTokens: 100,
  carry: 'recent' as const,
  rotationCarryMessages: 2,
  timeZone: '',
};
const summary: TranscriptEntry = { role: 'summary', text: 'before', at: 0 };
const reset: TranscriptEntry = { role: 'reset', at: 0 };
const result = (id: string): TranscriptEntry => ({
  role: 'tool',
  turnId: turnId('t'),
  callId: callId(id),
  name: 'time',
  status: 'ok',
  text: '',
  at: 0,
});

describe('what the model may see', () => {
  test('begins at the last summary and behind the last reset', () => {
    const late = userEntry('t2', 'late');
    expect(windowOf([userEntry('t1', 'early'), summary, late])).toEqual([summary, late]);
    expect(windowOf([summary, userEntry('t1', 'early'), reset, late])).toEqual([late]);
    expect(windowOf([reset, summary, late])).toEqual([summary, late]);
  });
});

describe('a summary made while the conversation went on', () => {
  const turns = ['t1', 't2', 't3', 't4'].map((id) => turnEntries(id, id));
  const made: TranscriptEntry = { role: 'summary', text: 's', keepsFrom: turnId('t3'), at: 0 };
  const shown = [made, ...turns.slice(2).flat()];

  test('stands before the turns it does not cover, which stand before it on the disk', () => {
    expect(windowOf([...turns.flat(), made])).toEqual(shown);
    const [first = [], second = [], third = [], fourth = []] = turns;
    const among = [...first, ...second, ...third, ...fourth.slice(0, 2), made, ...fourth.slice(2)];
    expect(windowOf(among)).toEqual(shown);
    expect(windowOf(windowOf(among))).toEqual(shown);
  });

  test('takes the place of an earlier one, wherever that stands', () => {
    const [first = [], second = [], third = [], fourth = []] = turns;
    const earlier: TranscriptEntry = { ...made, text: 'e', keepsFrom: turnId('t2') };
    const all = [...first, ...second, ...third, earlier, ...fourth, made];
    expect(windowOf(all)).toEqual(shown);
  });

  test('brings nothing back: not from before a new start, not what was taken back', () => {
    const [first = [], , third = []] = turns;
    expect(windowOf([...third, reset, ...first, made])).toEqual([made]);
    const undo = { role: 'undo', undoes: turnId('t3'), by: messageId('m'), at: 0 } as const;
    expect(windowOf([...turns.flat(), made, undo])).toEqual([made, ...(turns[3] ?? []), undo]);
  });
});

describe('a turn that failed before the model said anything', () => {
  test('is carried with its end, so that its message still counts as taken up', () => {
    const failed: readonly TranscriptEntry[] = [
      { ...userEntry('t1', 'one'), seq: 1 },
      {
        role: 'turn_end',
        turnId: turnId('t1'),
        outcome: 'failed',
        answers: [],
        throughSeq: 1,
        at: 0,
      },
    ];
    const carried = carryOver(failed, POLICY);
    expect(carried).toEqual(failed);
    expect(takenUp(carried)).toEqual(failed);
  });
});

describe('what was taken back', () => {
  const undo = { role: 'undo', undoes: turnId('t2'), by: messageId('m'), at: 0 } as const;
  const one = turnEntries('t1', 'one');
  const two = turnEntries('t2', 'two');

  test('is out of sight, and nothing else is', () => {
    const later = userEntry('t3', 'three');
    expect(windowOf([...one, ...two, undo, later])).toEqual([...one, undo, later]);
  });

  test('is known to be so in the next file, where that was the last thing that happened', () => {
    expect(carryOver(windowOf([...one, ...two, undo]), POLICY).at(-1)).toEqual(undo);
    expect(carryOver([undo], { ...POLICY, carry: 'nothing' })).toEqual([undo]);
    expect(carryOver([undo, userEntry('t3', 'three')], POLICY)).not.toContain(undo);
  });

  test('is not carried into the next file', () => {
    const policy = { ...POLICY, rotationCarryMessages: 10 };
    const carried = carryOver(windowOf([...one, ...two, undo]), policy);
    expect(JSON.stringify(carried)).not.toContain('two');
    expect(JSON.stringify(carried)).toContain('one');
  });
});

describe('what a new file opens with', () => {
  const turns = [...turnEntries('t1', 'one'), ...turnEntries('t2', 'two')];

  test('the running summary and the last messages, without bookkeeping', () => {
    const carried = carryOver([summary, ...turns, userEntry('t3', 'three')], POLICY);
    expect(carried.map((entry) => entry.role)).toEqual(['summary', 'assistant', 'user']);
  });

  test('a tool result never comes without its call', () => {
    const [asked, called] = turnEntries('t1', 'one');
    const window = [asked, called, result('a'), result('b'), result('c')].filter(
      (e) => e !== undefined,
    );
    const carried = carryOver(window, POLICY);
    expect(carried.map((entry) => entry.role)).toEqual([
      'summary',
      'assistant',
      'tool',
      'tool',
      'tool',
    ]);
  });

  test('nothing where that is the setting, the summary alone where no messages are', () => {
    expect(carryOver([summary, ...turns], { ...POLICY, carry: 'nothing' })).toEqual([]);
    expect(carryOver([summary, ...turns], { ...POLICY, rotationCarryMessages: 0 })).toEqual([
      { ...summary, omitted: 8 },
    ]);
  });

  test('how many messages stand neither in the summary nor behind it, over any number of files', () => {
    const [first] = carryOver(turns, POLICY);
    expect(first).toMatchObject({ role: 'summary', text: '', omitted: 5 });
    const [second] = carryOver(windowOf([...carryOver(turns, POLICY), ...turns]), POLICY);
    expect(second).toMatchObject({ role: 'summary', omitted: 13 });
    expect(carryOver([summary, ...turns.slice(-2)], POLICY)[0]).toEqual(summary);
  });
});

describe('a new file begins', () => {
  test.each([
    ['the day before', '2026-01-14', { bytes: 0, tokens: 0 }, true],
    ['today, small', '2026-01-15', { bytes: 999, tokens: 99 }, false],
    ['today, large', '2026-01-15', { bytes: 1000, tokens: 0 }, true],
    ['today, many tokens', '2026-01-15', { bytes: 0, tokens: 100 }, true],
    ['tomorrow, because the clock went back', '2026-01-16', { bytes: 0, tokens: 0 }, false],
  ])('behind a file of %s: %s %o -> %s', (_, day, growth, expected) => {
    expect(isRotationDue(day, '2026-01-15', growth, POLICY)).toBe(expected);
  });

  test('only where a person speaks in a turn that is not known', () => {
    const isKnown = (id: string) => id === 't1';
    expect(startsTurn(userEntry('t2', 'new'), isKnown)).toBe(true);
    expect(startsTurn(userEntry('t1', 'steering'), isKnown)).toBe(false);
    expect(startsTurn(result('a'), isKnown)).toBe(false);
    expect(startsTurn(reset, isKnown)).toBe(true);
  });
});
