// What /new and /undo took out of a conversation's view, brought back.

import { describe, expect, test } from 'vitest';
import { messageId, turnId } from '../../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../../src/kernel/message/transcript.ts';
import { pointsIn, windowOf, withRestored } from '../../../src/kernel/sessions/rules/carry.ts';

const BY = messageId('chat:restore');
const said = (turn: string, at: number): readonly TranscriptEntry[] => [
  { role: 'user', turnId: turnId(turn), text: `ask ${turn}`, at },
  {
    ...{ role: 'assistant', turnId: turnId(turn), text: `answer ${turn}`, at: at + 1 },
    ...{ toolCalls: [], thinking: [], model: 'm' },
  },
];
const reset = (at: number): TranscriptEntry => ({ role: 'reset', at });
const undo = (turn: string, at: number): TranscriptEntry => ({
  ...{ role: 'undo', undoes: turnId(turn), by: messageId(`chat:undo ${at}`), at },
});
const summary = (text: string, at: number): TranscriptEntry => ({ role: 'summary', text, at });
const words = (entries: readonly TranscriptEntry[]) =>
  windowOf(entries).flatMap((entry) => ('text' in entry ? [entry.text] : []));

function restored(entries: readonly TranscriptEntry[], index = 0) {
  const point = pointsIn([], entries).toReversed()[index];
  if (point === undefined) throw new Error('nothing to restore');
  return withRestored(windowOf(entries), point, BY, 1000);
}

describe('what was taken out of view', () => {
  test('comes back in front of what was said since', () => {
    const all = [...said('1', 10), reset(20), ...said('2', 30)];
    expect(words(restored(all))).toEqual(['ask 1', 'answer 1', 'ask 2', 'answer 2']);
  });

  test('comes back where it was, when one exchange was taken back', () => {
    const all = [...said('1', 10), ...said('2', 20), undo('2', 30), ...said('3', 40)];
    expect(words(restored(all))).toEqual(
      words([...said('1', 10), ...said('2', 20), ...said('3', 40)]),
    );
  });

  test('is only what was in view: nothing from before an earlier /new, nothing taken back before', () => {
    const all = [
      ...said('1', 10),
      reset(15),
      ...said('2', 20),
      ...said('3', 30),
      undo('3', 35),
      reset(40),
    ];
    expect(words(restored(all))).toEqual(['ask 2', 'answer 2']);
    expect(words(restored(all, 2))).toEqual(['ask 1', 'answer 1']);
  });

  test('joins the summaries of both, so that one stands for all', () => {
    const all = [
      ...[summary('long ago', 5), ...said('1', 10), reset(20)],
      ...[...said('2', 30), summary('since', 40), ...said('3', 50)],
    ];
    const view = restored(all);
    expect(words(view)).toEqual(['long ago\n\nsince', 'ask 1', 'answer 1', 'ask 3', 'answer 3']);
    expect(words([...view, ...said('4', 60)])).toHaveLength(7);
  });

  test('is nothing where nothing was said', () => {
    expect(pointsIn([], [reset(1), reset(2)])).toEqual([]);
  });
});
