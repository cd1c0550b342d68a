// How a turn is named: by its session and the sequence number of its first message, so that every
// retry of the turn, in this process or the next, has the same name.

import {
  type MessageId,
  messageId,
  type SessionKey,
  sessionKey,
  type TurnId,
  turnId,
} from './ids.ts';

export function turnIdOf(session: SessionKey, firstSeq: number): TurnId {
  return turnId(`${session}#${firstSeq}`);
}

/** The sequence number in a turn's name; undefined where the text is no such name. */
export function firstSeqOf(turn: TurnId): number | undefined {
  const match = /#(\d+)$/.exec(turn);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

/** The turn that said this; undefined for a text that no turn said. */
export function turnOfAnswer(answer: MessageId): TurnId | undefined {
  const [, turn] = /^(.*#\d+)\/(?:say\/)?\d+(?:\/moved)?$/.exec(answer) ?? [];
  return turn === undefined ? undefined : turnId(turn);
}

/** The conversation of a turn, which is not always that of the chat it was answered in. */
export function sessionOfTurn(turn: TurnId): SessionKey {
  return sessionKey(turn.replace(/#\d+$/, ''));
}

/** The name of a turn's n-th answer, counted from 0. */
export function answerIdOf(turn: TurnId, ordinal: number): MessageId {
  return messageId(`${turn}/${ordinal}`);
}
