// What a turn sees of messages that were recorded more than once.

import { describe, expect, it } from 'vitest';
import { shownThrough, takenUp, threadView } from '../../src/agent/rules/turn-closing.ts';
import { messageId, turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';

const T1 = turnId('s#1');
const T2 = turnId('s#2');
const asks = (turn: typeof T1, id: string, seq?: number): TranscriptEntry => ({
  role: 'user',
  turnId: turn,
  messageId: messageId(id),
  ...(seq === undefined ? {} : { seq }),
  text: id,
  at: 0,
});
const answers = (turn: typeof T1, text: string, throughSeq?: number): TranscriptEntry => ({
  role: 'assistant',
  turnId: turn,
  text,
  toolCalls: [],
  thinking: [],
  model: 'm',
  ...(throughSeq === undefined ? {} : { throughSeq }),
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

describe('a turn tried again with its first message alone', () => {
  const onlyOne = { turnId: T1, asked: new Set([messageId('one')]) };

  it('keeps what an earlier try showed the model, and leaves out what came behind it', () => {
    const own = [asks(T1, 'one', 1), asks(T1, 'two', 2), answers(T1, 'a', 2), asks(T1, 'three', 3)];
    expect(textsOf(threadView(own, own, onlyOne))).toEqual(['one', 'two', 'a']);
    expect(shownThrough(own)).toBe(2);
  });

  it('leaves out what stands before an answer that was not given to it', () => {
    const own = [asks(T1, 'one', 1), asks(T1, 'two', 2), answers(T1, 'a', 1)];
    expect(textsOf(threadView(own, own, onlyOne))).toEqual(['one', 'a']);
    expect(shownThrough(own)).toBe(1);
  });

  it('leaves to the next turn what an older program recorded without its place', () => {
    const own = [asks(T1, 'one'), asks(T1, 'two'), answers(T1, 'a')];
    expect(textsOf(threadView(own, own, onlyOne))).toEqual(['one', 'a']);
    expect(shownThrough(own)).toBe(0);
  });

  it('does not repeat a message that a later turn has answered meanwhile', () => {
    const own = [asks(T1, 'one', 1), asks(T1, 'two', 2), answers(T1, 'a', 2)];
    const history = [...own, asks(T2, 'two', 2), answers(T2, 'to two', 2)];
    const view = threadView(history, own, onlyOne);
    expect(textsOf(view)).toEqual(['two', 'to two', 'one', 'a']);
  });

  it('shows it in its own turn where an earlier turn had recorded it without answering', () => {
    const earlier = turnId('s#0');
    const own = [asks(T1, 'one', 1), asks(T1, 'two', 2), answers(T1, 'a', 2)];
    const history = [asks(earlier, 'two', 2), answers(earlier, 'to none', 0), ...own];
    expect(textsOf(threadView(history, own, onlyOne))).toEqual(['to none', 'one', 'two', 'a']);
  });
});

describe('a conversation whose process died', () => {
  it('is without the messages that no answer of their turn took up', () => {
    const dead = [asks(T1, 'one', 1), asks(T1, 'two', 2)];
    const answered = [asks(T2, 'two', 2), answers(T2, 'to two', 2), asks(T2, 'three', 3)];
    expect(textsOf(takenUp([...dead, ...answered]))).toEqual(['two', 'to two']);
  });

  it('keeps what a turn ended with, though the model never answered', () => {
    const failed = [
      asks(T1, 'one', 1),
      {
        role: 'turn_end',
        turnId: T1,
        outcome: 'failed',
        answers: [],
        throughSeq: 1,
        at: 0,
      } as const,
    ];
    expect(takenUp(failed)).toEqual(failed);
  });

  it('keeps what an older program recorded without its place', () => {
    const old = [asks(T1, 'one'), answers(T1, 'to one')];
    expect(takenUp(old)).toEqual(old);
  });
});
