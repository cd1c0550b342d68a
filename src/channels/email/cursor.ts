// The channel's place in the mailbox. The UID only grows, so no list of seen mails is needed; flags
// are the owner's and never read (cases E04 to E07).

import type { OpenMailbox } from './imap-connection.ts';

export type MailCursor = {
  readonly uidValidity: string;
  /** Everything up to here is done. */
  readonly uid: number;
  /** Epoch milliseconds of the first start: older mail is never ours to answer. */
  readonly since: number;
};

/** Where to read on: after a UID, or, when the server renumbered the mailbox, by date. */
export type ReadFrom =
  | { readonly kind: 'start'; readonly cursor: MailCursor }
  | { readonly kind: 'continue'; readonly cursor: MailCursor }
  | { readonly kind: 'rescan'; readonly cursor: MailCursor };

export function readFrom(stored: string | undefined, mailbox: OpenMailbox, now: number): ReadFrom {
  const { uidValidity } = mailbox;
  const previous = stored === undefined ? undefined : parseCursor(stored);
  const uid = Math.max(0, mailbox.uidNext - 1);
  if (previous === undefined) return { kind: 'start', cursor: { uidValidity, uid, since: now } };
  if (previous.uidValidity === uidValidity) return { kind: 'continue', cursor: previous };
  return { kind: 'rescan', cursor: { uidValidity, uid, since: previous.since } };
}

export const formatCursor = (cursor: MailCursor) =>
  `${cursor.uidValidity}:${cursor.uid}:${cursor.since}`;

function parseCursor(text: string): MailCursor | undefined {
  const match = /^(\d+):(\d+):(\d+)$/.exec(text);
  if (match === null) return undefined;
  const [, uidValidity = '', uid, since] = match;
  return { uidValidity, uid: Number(uid), since: Number(since) };
}
