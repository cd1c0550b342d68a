// A person's reaction to something we sent, in words for the model.

import { excerptOf } from './excerpt.ts';
import { authorOf } from './group-talk.ts';
import type { InboundMessage } from './message.ts';

const MAX_UNITS = 16;

/** Only signs, never words: what a client calls an emoji may be any text. */
export function emojiOf(text: string | undefined): string | undefined {
  const sign = text?.trim() ?? '';
  const isSign =
    sign.length <= MAX_UNITS && /^(?:\p{RGI_Emoji}|\p{Extended_Pictographic}\uFE0F?)$/v.test(sign);
  return isSign ? sign : undefined;
}

export function reactionNote(
  { reaction, group, sender }: Pick<InboundMessage, 'reaction' | 'group' | 'sender'>,
  answer: string,
): string {
  const about = `your answer "${excerptOf(answer)}"`;
  const who = group === undefined ? '' : `${authorOf(sender)}: `;
  return reaction?.emoji === undefined
    ? `${who}[took back the reaction to ${about}]`
    : `${who}[reacted with ${reaction.emoji} to ${about}]`;
}
