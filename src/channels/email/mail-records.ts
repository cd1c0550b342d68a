// The rows of the mail register (mail-register.ts): what is kept of each mail, and how the texts of one
// person are erased from them.

import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import type { Verification } from '../../kernel/message/message.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { jsonRow, number, rowShape, text } from '../../lib/json/json.ts';
import type { MailPlace } from './mail-files.ts';
import type { MailQuote, ParentMail } from './rules/threading.ts';

export type AnsweredMail = ParentMail & { readonly place?: MailPlace };

export type ThreadRecord = {
  readonly sender: string;
  readonly level: Verification;
  /** Epoch milliseconds of the newest mail of the person, by our clock. */
  readonly lastHumanAt: number;
  /** The newest mail, answered when an answer names none. */
  readonly parent: ParentMail;
};

/** A mail we know by its Message-ID. */
export type KnownMail = {
  readonly sender: string;
  readonly thread: string;
  readonly level: Verification;
  /** Our name of the inbound mail; undefined for one of our own. */
  readonly inbound?: MessageId;
  /** The answer one of our own carries. */
  readonly outbound?: MessageId;
  /** Further addresses it was sent to. */
  readonly copies?: readonly string[];
};

/** An answer on its way: everything that makes a second try byte-identical. */
export type OutgoingRecord = {
  readonly messageId: string;
  readonly dateMs: number;
  readonly subject: string;
  readonly inReplyTo?: string;
  readonly references: readonly string[];
  /** Who gets a copy. */
  readonly copies?: readonly string[];
  /** Epoch milliseconds of the latest try. */
  readonly triedAt: number;
  readonly isSent: boolean;
};

/** A mail that waits for a limit: one to be answered, or one of our own. */
export type HeldMail = {
  readonly id: MessageId;
  readonly recipient: string;
  readonly reason: string;
  /** Epoch milliseconds; the order in which they are released. */
  readonly since: number;
};

/** A copy for the Sent folder that is still to be stored. */
export type PendingCopy = {
  readonly messageId: string;
  readonly dateMs: number;
  readonly rawBase64: string;
  /** Tries so far; one of them may have stored it. */
  readonly tries: number;
};

export type InboundRecord = {
  readonly id: MessageId;
  readonly fingerprint: string;
  readonly thread: string;
  readonly sender: string;
  readonly level: Verification;
  readonly parent: AnsweredMail;
  readonly receivedAt: number;
  /** The text with its quotes, where they were cut; kept 30 days for whoever looks into the state. */
  readonly wholeText: string | undefined;
  /** How an answer quotes it, where it does. */
  readonly quote: MailQuote | undefined;
};

// Takes the whole texts, quotes and subjects of a person's mails out of the register, where they hold
// certain words.

const KNOWN = rowShape<KnownMail>({ sender: text, thread: text, level: text });
const SUBJECT = rowShape<SubjectRow>({ subject: text });
const THREAD = rowShape<ThreadRecord>({
  ...{ sender: text, level: text, lastHumanAt: number },
  parent: z.looseObject({ subject: text }),
});

/** `sender`: their address; how many texts went. */
export async function forgetMails(
  state: KeyValueStore,
  sender: string,
  holds: Holds,
): Promise<number> {
  const known = (await state.list('id/')).flatMap(({ value }) => jsonRow(value, KNOWN) ?? []);
  const theirs = known.filter((mail) => mail.sender === sender);
  const inbound = theirs.flatMap((mail) => mail.inbound ?? []);
  let texts = 0;
  for (const key of inbound.flatMap((id) => [`text/${id}`, `quote/${id}`])) {
    const value = await state.get(key);
    if (value === undefined || !holds(value)) continue;
    await state.delete(key);
    texts += 1;
  }
  const changed: (readonly [key: string, row: object])[] = [];
  const outbound = theirs.flatMap((mail) => (mail.outbound === undefined ? [] : [mail.outbound]));
  for (const key of [...inbound.map((id) => `in/${id}`), ...outbound.map((id) => `out/${id}`)]) {
    const row = jsonRow((await state.get(key)) ?? '', SUBJECT);
    if (row !== undefined && holdsSubject(row, holds)) changed.push([key, { ...row, subject: '' }]);
  }
  for (const { key, value } of await state.list('thread/')) {
    const row = jsonRow(value, THREAD);
    if (row?.sender !== sender || !holdsSubject(row.parent, holds)) continue;
    changed.push([key, { ...row, parent: { ...row.parent, subject: '' } }]);
  }
  await state.setMany(changed.map(([key, row]) => ({ key, value: JSON.stringify(row) })));
  return texts + changed.length;
}

/** An answer on its way keeps its subject: every try of it is the same. */
type SubjectRow = { readonly subject: string; readonly isSent?: boolean };

const holdsSubject = ({ subject, isSent }: SubjectRow, holds: Holds) =>
  holds(subject) && isSent !== false;
