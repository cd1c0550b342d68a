// A text for somebody outside the conversation: whom it is for, and what is said when. Where it has to
// be shown to an owner first, the gateway keeps it as a draft.

import type { SendPolicy } from '../../../kernel/config/limits.ts';
import type { Letter } from '../../../kernel/message/message.ts';
import { verbatim } from '../../../kernel/message/untrusted.ts';
import { shownText } from '../../../kernel/questions/rules/question-text.ts';
import type { Hours } from '../../../lib/time/zone-time.ts';

/** Everybody it reaches, in the words of the letter. */
export function recipientsOf(letter: Letter): readonly [string, ...string[]] {
  return [letter.to, ...(letter.kind === 'mail' ? (letter.cc ?? []) : [])];
}

export type SendMoment = {
  readonly policy: SendPolicy;
  readonly hours: Hours;
  /** Minutes after midnight where the owner is. */
  readonly minute: number;
  /** An owner asks, alone with the agent. */
  readonly isOwners: boolean;
  /** The conversation shows words of others. */
  readonly isTainted: boolean;
  /** Something was sent before to everybody it goes to. */
  readonly isKnown: boolean;
};

/** Only what an owner asked for, untouched by words of others, ever goes out without a yes. */
export function mustAsk(moment: SendMoment): boolean {
  const { policy, isOwners, isTainted, isKnown } = moment;
  if (!isOwners || isTainted) return true;
  if (policy === 'never') return false;
  if (policy === 'always') return true;
  return policy === 'first_contact' ? !isKnown : !isWithin(moment);
}

function isWithin({ hours: { from, to }, minute }: SendMoment): boolean {
  return from < to ? minute >= from && minute < to : minute >= from || minute < to;
}

/** What is shown while an owner writes another text. */
export function editText(to: string): string {
  return (
    `Write the new text for ${verbatim(shownText(to))} as your next message here; I show it to you ` +
    'again before it goes out. /cancel leaves the text as it is.'
  );
}
