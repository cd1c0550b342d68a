// Changes of what was said before: whose they are, what they do to a turn that has not begun, and
// their words for the model and for the person.

import { excerptOf } from '../../lib/text/cut.ts';
import { authorOf } from '../intake/rules/group-talk.ts';
import { type Amendment, type InboundMessage, idsOf, type Sender } from './message.ts';

/** Only the author changes a message. */
export function isSameSender(one: Sender, other: Sender): boolean {
  if (one.kind !== 'person' || other.kind !== 'person') return false;
  const ids: readonly string[] = idsOf(one);
  return idsOf(other).some((id) => ids.includes(id));
}

type Numbered = { readonly seq: number; readonly message: InboundMessage };

/**
 * The messages of a turn that the model was not shown yet, each as its author wants it now. The
 * changes are gone from among them, but their places count: the last message has the highest.
 */
export function withChanges<Q extends Numbered>(messages: readonly Q[]): readonly Q[] {
  let result: readonly Q[] = [];
  for (const queued of messages) {
    const { amends } = queued.message;
    const earlier = result.find(({ message }) => message.id === amends?.id);
    if (amends === undefined || earlier === undefined) result = [...result, queued];
    else if (amends.kind === 'withdrawn') result = result.filter((one) => one !== earlier);
    else result = result.map((one) => (one === earlier ? withText(one, queued) : one));
  }
  const seq = Math.max(0, ...messages.map((queued) => queued.seq));
  return result.map((queued, index) => (index === result.length - 1 ? { ...queued, seq } : queued));
}

const withText = <Q extends Numbered>(one: Q, { message: { text } }: Q): Q => ({
  ...one,
  message: { ...one.message, text },
});

/** In front of the new text, where the model has seen the earlier one. */
export function changeNote({ kind, earlier }: Amendment): string {
  const which = earlier === undefined ? 'an earlier message' : `my message "${earlier}"`;
  return kind === 'withdrawn'
    ? `[I have deleted ${which}: take it as not said]`
    : `[I have changed ${which}; this replaces it]`;
}

/** Asked when the message is answered already, as it was before. */
export function againQuestion({ earlier }: Amendment, changed: 'during' | 'after'): string {
  const which = earlier === undefined ? 'a message' : `your message "${earlier}"`;
  const what =
    changed === 'after'
      ? `You changed ${which} after I had answered it.`
      : `You changed ${which} while I was answering it: the answer is to the earlier version.`;
  return `${what} Shall I answer it as it is now?`;
}

// A person's reaction to something we sent, in words for the model.

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
