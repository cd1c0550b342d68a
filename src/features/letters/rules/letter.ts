// A letter: a text for somebody outside the conversation, its recipients, and when it needs an
// approval.

import type { SendPolicy } from '../../../kernel/config/limits.ts';
import type { Letter } from '../../../kernel/message/message.ts';
import { verbatim } from '../../../kernel/message/untrusted.ts';
import { shownText } from '../../../kernel/questions/rules/question-text.ts';
import { t } from '../../../lib/texts.ts';
import type { Hours } from '../../../lib/time/zone-time.ts';

/** All recipients, as written in the letter. */
export function recipientsOf(letter: Letter): readonly [string, ...string[]] {
  return [letter.to, ...(letter.kind === 'mail' ? (letter.cc ?? []) : [])];
}

export const filesOf = (letter: Letter) =>
  letter.kind === 'mail' ? (letter.attachments ?? []) : [];

export type SendMoment = {
  readonly policy: SendPolicy;
  readonly hours: Hours;
  /** Minutes after midnight in the owner's zone. */
  readonly minute: number;
  /** An owner asks, in a private chat. */
  readonly isOwners: boolean;
  /** The conversation contains untrusted content. */
  readonly isTainted: boolean;
  /** All recipients got a message before. */
  readonly isKnown: boolean;
  /** Files of the workspace would leave the machine with it. */
  readonly hasFiles: boolean;
};

/** Without an approval only requests of an owner in an untainted conversation are sent. */
export function mustAsk(moment: SendMoment): boolean {
  const { policy, isOwners, isTainted, isKnown, hasFiles } = moment;
  if (!isOwners || isTainted) return true;
  if (policy === 'never') return false;
  if (policy === 'always' || hasFiles) return true;
  return policy === 'first_contact' ? !isKnown : !isWithin(moment);
}

function isWithin({ hours: { from, to }, minute }: SendMoment): boolean {
  return from < to ? minute >= from && minute < to : minute >= from || minute < to;
}

/** Shown while an owner writes a new text. */
export function editText(to: string): string {
  return (
    t`Write the new text for ${verbatim(shownText(to))} as your next message here; I show it to you ` +
    t`again before it goes out. /cancel leaves the text as it is.`
  );
}
