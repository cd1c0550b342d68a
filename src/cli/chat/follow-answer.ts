// Follows one question through the chat's events to its last answer.

import type { DoorEvent } from '../../channels/door.ts';
import type { LiveUpdate } from '../../core/event.ts';
import type { MessageId } from '../../core/ids.ts';

export type AnswerEvent =
  | { readonly type: 'live'; readonly update: LiveUpdate }
  /** A text that stands: an answer, or one the agent sent on its way to it. */
  | { readonly type: 'text'; readonly markdown: string; readonly final: boolean }
  | { readonly type: 'done'; readonly outcome: 'answered' | 'stopped' | 'failed' };

type TurnEnd = NonNullable<LiveUpdate['result']>;

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
