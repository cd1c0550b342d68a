// Follows one question through the chat's events to its last answer.

import { randomUUID } from 'node:crypto';
import type { DoorEvent } from '../../channels/door.ts';
import type { LiveUpdate } from '../../core/event.ts';
import type { MessageId } from '../../core/ids.ts';
import type { Conversation } from './conversation.ts';

export type AnswerEvent =
  | { readonly type: 'live'; readonly update: LiveUpdate }
  /** A text that stands: an answer, or one the agent sent on its way to it. */
  | { readonly type: 'text'; readonly markdown: string; readonly final: boolean }
  | { readonly type: 'done'; readonly outcome: 'answered' | 'stopped' | 'failed' };

type TurnEnd = NonNullable<LiveUpdate['result']>;

/** Asks one question after the other, each followed to its last answer. */
export interface Questions {
  ask(text: string, signal: AbortSignal): AsyncGenerator<AnswerEvent, void, void>;
}

export function createQuestions(conversation: Conversation): Questions {
  let lastSeq = 0;

  async function* noting(events: AsyncIterable<DoorEvent>) {
    for await (const event of events) {
      if (event.type === 'said') lastSeq = event.seq;
      yield event;
    }
  }

  return {
    async *ask(text, signal) {
      const clientId = randomUUID();
      const events = conversation.events(lastSeq, signal);
      await conversation.submit(clientId, text);
      yield* followAnswer(noting(events), clientId);
    },
  };
}

/** `turnId/n`; texts sent on the way are `turnId/say/n`. */
const ANSWER_ID = /^(.*#\d+)\/(\d+)$/;

/**
 * Ends with `done` once every answer to the question was said. Events before the question itself
 * are passed over.
 */
export async function* followAnswer(
  events: AsyncIterable<DoorEvent>,
  clientId: string,
): AsyncGenerator<AnswerEvent, void, void> {
  let question: MessageId | undefined;
  let end: TurnEnd | undefined;
  let heard = 0;
  for await (const event of events) {
    if (question === undefined) {
      if (event.type === 'said' && event.from === 'person' && event.id.endsWith(clientId)) {
        question = event.id;
      }
      continue;
    }
    if (event.type === 'live') {
      yield { type: 'live', update: event.update };
      if (event.update.phase === 'ended') end = event.update.result ?? end;
    } else if (event.from === 'agent') {
      const isAnswer = ANSWER_ID.test(event.id);
      const isReply = event.id === `${question}/reply`;
      yield { type: 'text', markdown: event.text, final: isAnswer || isReply };
      if (isReply) return yield { type: 'done', outcome: 'answered' };
      if (isAnswer) heard += 1;
      // A command's reply and the word about a message set aside come without a turn's end.
      if (isAnswer && end === undefined) return yield { type: 'done', outcome: 'answered' };
    }
    if (end !== undefined && heard >= end.answers) return yield { type: 'done', outcome: end.kind };
  }
}
