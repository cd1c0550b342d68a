// What a turn sees of messages that were recorded more than once.

import { describe, expect, it } from 'vitest';
import { messageId, turnId } from '../../src/core/ids.ts';
import { threadView } from '../../src/core/thread-view.ts';
import type { TranscriptEntry } from '../../src/core/transcript.ts';

const T1 = turnId('s#1');
const T2 = turnId('s#2');
const asks = (turn: typeof T1, id: string): TranscriptEntry => ({
  role: 'user',
  turnId: turn,
  messageId: messageId(id),
  text: id,
  at: 0,
});
const answers = (turn: typeof T1, text: string): TranscriptEntry => ({
  role: 'assistant',
  turnId: turn,
  text,
  toolCalls: [],
  thinking: [],
  model: 'm',
  at: 0,
});
const textsOf = (entries: readonly TranscriptEntry[]) =>
  entries.map((entry) => ('text' in entry ? entry.text : ''));

describe('a turn tried again', () => {
  it('sees of its own record only the messages it is to answer now', () => {
    const own = [asks(T1, 'one'), asks(T1, 'two')];
    const view = threadView(own, own, { turnId: T1, asked: new Set([messageId('one')]) });
    expect(textsOf(view)).toEqual(['one']);
  });

  it('leaves a message out of the history where it is asked now', () => {
    const history = [asks(T1, 'one'), asks(T1, 'two'), answers(T1, 'to one')];
    const own = [asks(T2, 'two')];
    const view = threadView(history, own, { turnId: T2, asked: new Set([messageId('two')]) });
    expect(textsOf(view)).toEqual(['one', 'to one', 'two']);
  });

  it('keeps of a message recorded twice the place where it was answered', () => {
    const history = [asks(T1, 'one'), asks(T1, 'two'), answers(T1, 'to one'), asks(T2, 'two')];
    const later = turnId('s#3');
    const view = threadView(history, [], { turnId: later, asked: new Set() });
    expect(textsOf(view)).toEqual(['one', 'to one', 'two']);
  });
});
