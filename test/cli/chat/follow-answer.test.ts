// Which of a chat's events belong to a question, and when its answer is complete.

import { describe, expect, test } from 'vitest';
import type { LocalEvent } from '../../../src/channels/local-channel.ts';
import { followAnswer } from '../../../src/channels/terminal/conversation.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  turnId,
} from '../../../src/kernel/message/ids.ts';
import type { LiveUpdate } from '../../../src/kernel/message/message.ts';

const CHAT = {
  channel: channelName('terminal'),
  account: DEFAULT_ACCOUNT,
  chat: chatId('default'),
};
const MINE = 'terminal:default:default:mine';

const EARLIER = 'terminal:default:default:earlier';

function said(id: string, text: string, from: 'person' | 'agent' = 'agent'): LocalEvent {
  return { type: 'said', seq: 1, id: messageId(id), from, text, at: 0 };
}

function answers(question: string, id: string, text: string): LocalEvent {
  return { ...said(id, text), replyTo: messageId(question) } as LocalEvent;
}

function ended(result?: LiveUpdate['result'], turn = 's#1', question = MINE): LocalEvent {
  const picture = {
    turnId: turnId(turn),
    replyTo: messageId(question),
    chat: CHAT,
    phase: 'ended',
    markdown: '',
    tools: [],
  } as const;
  return { type: 'live', update: result === undefined ? picture : { ...picture, result } };
}

function logged(kind: 'failed'): LocalEvent {
  const end = { turn: turnId('s#1'), kind, answers: 1, tools: [] };
  return { ...said('s#1/ended', ''), ended: end } as LocalEvent;
}

async function follow(...events: readonly LocalEvent[]) {
  async function* source() {
    yield* events;
  }
  const texts: string[] = [];
  for await (const event of followAnswer(source(), 'mine')) {
    if (event.type === 'text') texts.push(event.markdown);
    if (event.type === 'done') return { texts, outcome: event.outcome };
  }
  return { texts, outcome: 'open' };
}

const question = said(MINE, 'hello?', 'person');

describe('an answer is complete', () => {
  test.each([
    [
      'after the turn ended and its one answer was said',
      [ended({ kind: 'answered', answers: 1 }), said('s#1/0', 'a')],
      { texts: ['a'], outcome: 'answered' },
    ],
    [
      'after all its answers',
      [ended({ kind: 'answered', answers: 2 }), said('s#1/0', 'a'), said('s#1/1', 'b')],
      { texts: ['a', 'b'], outcome: 'answered' },
    ],
    [
      'with what was sent on the way to it',
      [said('s#1/say/0', 'wait'), ended({ kind: 'answered', answers: 1 }), said('s#1/0', 'a')],
      { texts: ['wait', 'a'], outcome: 'answered' },
    ],
    [
      'at once, where the turn has nothing to say',
      [ended({ kind: 'stopped', answers: 0 })],
      { texts: [], outcome: 'stopped' },
    ],
    [
      'when the turn failed, after the word about it',
      [ended({ kind: 'failed', answers: 1 }), said('s#1/0', 'sorry')],
      { texts: ['sorry'], outcome: 'failed' },
    ],
    [
      'when the turn had failed before its events were followed',
      [logged('failed'), said('s#1/0', 'sorry')],
      { texts: ['sorry'], outcome: 'failed' },
    ],
    [
      'by the reply of a command that does not wait',
      [said(`${MINE}/reply`, 'Stopped.')],
      { texts: ['Stopped.'], outcome: 'answered' },
    ],
    [
      'by the reply of a command in order, which is no turn',
      [said('s#1/0', 'New conversation.')],
      { texts: ['New conversation.'], outcome: 'answered' },
    ],
  ])('%s', async (_name, events, expected) => {
    expect(await follow(question, ...events)).toEqual(expected);
  });
});

test('what was said before the question is not its answer', async () => {
  const before = [said('s#0/0', 'old'), ended({ kind: 'answered', answers: 1 })];
  const after = [ended({ kind: 'answered', answers: 1 }), said('s#1/0', 'new')];
  expect((await follow(...before, question, ...after)).texts).toEqual(['new']);
});

test('a turn that was cut off is waited for, because it is tried again', async () => {
  const again = [ended({ kind: 'answered', answers: 1 }), said('s#1/0', 'a')];
  expect(await follow(question, ended(), ...again)).toEqual({ texts: ['a'], outcome: 'answered' });
});

describe('a question asked while an earlier one is being answered', () => {
  const earlier = said(EARLIER, 'and before?', 'person');
  const earlierEnds = (kind: 'answered' | 'stopped') => ended({ kind, answers: 1 }, 's#0', EARLIER);

  test('is not answered by the answer to the earlier one', async () => {
    const first = [earlierEnds('answered'), answers(EARLIER, 's#0/0', 'old')];
    const second = [ended({ kind: 'answered', answers: 1 }), answers(MINE, 's#1/0', 'new')];
    const result = await follow(earlier, question, ...first, ...second);
    expect(result).toEqual({ texts: ['new'], outcome: 'answered' });
  });

  test('is answered by that turn where the turn took it in', async () => {
    const both = [earlierEnds('answered'), answers(MINE, 's#0/0', 'both')];
    const result = await follow(earlier, question, ...both);
    expect(result).toEqual({ texts: ['both'], outcome: 'answered' });
  });

  test('is over when that turn is stopped, which withdraws what waits', async () => {
    const result = await follow(earlier, question, earlierEnds('stopped'));
    expect(result).toEqual({ texts: [], outcome: 'stopped' });
  });
});
