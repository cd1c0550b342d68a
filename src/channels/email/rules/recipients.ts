// Who besides the sender gets an answer (case E12): nobody, unless it is configured; then people the
// allow list names, never more, and nobody at all where a mail went to a crowd.

import { addressesIn, isOwnAddress } from './address.ts';
import { headerValues, type MailHeaders } from './headers.ts';
import { isMachineAddress } from './rules.ts';

/** `trusted`: a mail of a proven sender is answered to all its recipients on the allow list. */
export const REPLY_ALL = ['never', 'trusted'] as const;
export type ReplyAll = (typeof REPLY_ALL)[number];

/** A mail to more people than this is no conversation. */
const MAX_RECIPIENTS = 20;
/** Copies of one answer. */
const MAX_COPIES = 5;
const MAX_NAMED = 10;

/** The other people of To and Cc, where the mail was addressed to us among them. */
export function otherRecipients(
  headers: MailHeaders,
  sender: string,
  own: readonly string[],
): readonly string[] {
  const fields = ['to', 'cc'].flatMap((name) => headerValues(headers, name));
  const named = [...new Set(fields.flatMap(addressesIn))];
  const isToUs = named.some((address) => isOwnAddress(address, own));
  if (!isToUs || named.length > MAX_RECIPIENTS) return [];
  return named.filter((address) => !isOwnAddress(address, own) && address !== sender);
}

/** Who of them gets a copy of the answer. The list's "*" names nobody. */
export function copyRecipients(
  others: readonly string[],
  replyAll: ReplyAll,
  isAuthenticated: boolean,
  allowFrom: readonly string[],
): readonly string[] {
  if (replyAll === 'never' || !isAuthenticated) return [];
  const listed = new Set(allowFrom.map((address) => address.toLowerCase()));
  const people = others.filter((one) => listed.has(one) && !isMachineAddress(one));
  return people.slice(0, MAX_COPIES);
}

/** Tells the model whom it talks to: an answer meant for one must not surprise by its readers. */
export function recipientNote(others: readonly string[], copies: readonly string[]): string {
  if (others.length === 0) return '';
  const named = others.slice(0, MAX_NAMED).join(', ');
  const more = others.length > MAX_NAMED ? ` and ${others.length - MAX_NAMED} more` : '';
  const readers = copies.length === 0 ? 'the sender only' : `the sender and ${copies.join(', ')}`;
  return `[sent to ${named}${more} too; your answer goes to ${readers}]`;
}
