// A thumb on a question that offers a yes and a no, on doors without buttons: up is the first choice,
// down the last. Who may decide is the question's, as for any other answer.

import type { MessageBus } from '../bus/bus.ts';
import { type InboundMessage, sessionKeyOf } from '../core/message.ts';
import type { Questions } from './questions.ts';

export type ThumbDeps = {
  readonly bus: Pick<MessageBus, 'sentAs'>;
  readonly questions: Pick<Questions, 'tokensOf'>;
};

const UP = '👍';
const DOWN = '👎';

/** The token of the choice that the reaction stands for; undefined where it answers nothing. */
export async function thumbed(
  { chat, reaction }: InboundMessage,
  { bus, questions }: ThumbDeps,
): Promise<string | undefined> {
  const sign = reaction?.emoji?.replace(/\p{Emoji_Modifier}/gu, '');
  if (reaction === undefined || (sign !== UP && sign !== DOWN)) return undefined;
  const sent = await bus.sentAs(sessionKeyOf(chat), reaction.to);
  if (sent === undefined) return undefined;
  const tokens = await questions.tokensOf(sent.id);
  // Of more than two choices no thumb says which is meant.
  if (tokens.length !== 2) return undefined;
  return tokens.at(sign === UP ? 0 : -1);
}
