// Threads of mail (case table D2): which conversation a mail continues, which headers and quote
// make every mail program show an answer in place (RFC 5322 section 3.6.4), and which other
// recipients get a copy (case E12).

import type { Verification } from '../../../kernel/message/message.ts';
import { escapeHtml } from '../../../lib/markup/writer.ts';
import { shortened } from '../../../lib/text/cut.ts';
import type { EmailConfig } from '../settings.ts';
import {
  addressesIn,
  domainOf,
  headerValues,
  isOwnAddress,
  type MailHeaders,
  messageIdsIn,
} from './address.ts';
import { isMachineAddress } from './machine-mail.ts';
import { boundedText } from './text.ts';

export type ParentMail = {
  /** `<id@domain>`; undefined if the mail has none. */
  readonly messageId?: string | undefined;
  readonly references?: string | undefined;
  readonly inReplyTo?: string | undefined;
  readonly subject: string;
  /** The other recipients of the mail. */
  readonly others?: readonly string[] | undefined;
};

const MAX_REFERENCES = 20;
const MAX_REFERENCES_CHARS = 900;
/** With its field name on one line of at most 998 characters (RFC 5322 section 2.1.1). */
const MAX_SUBJECT_CHARS = 900;
/**
 * Format characters other than those that join emoji, Persian and Hindi letters and mark word
 * breaks and direction.
 */
const FORMATTING = /(?![\u00AD\u200C-\u200F])\p{Cf}/gu;

/** Ids with other characters are not repeated: outgoing mail is ASCII. */
const PLAIN_ID = /^[\x21-\x7e]+$/;

/** The mail that an answer names as its parent; undefined if it has no usable id. */
export function replyParent({ messageId = '' }: ParentMail): string | undefined {
  return PLAIN_ID.test(messageId) ? messageId : undefined;
}

/** The parent's ancestors and the parent; middle ones are dropped if too many. */
export function replyReferences(parent: ParentMail): readonly string[] {
  const inReplyTo = messageIdsIn(parent.inReplyTo);
  const own = messageIdsIn(parent.references);
  const ancestors = own.length === 0 && inReplyTo.length === 1 ? inReplyTo : own;
  const ids = ancestors.filter((id) => id !== parent.messageId && PLAIN_ID.test(id));
  const direct = replyParent(parent);
  if (direct !== undefined) ids.push(direct);
  const isLong = ids.length > MAX_REFERENCES || ids.join(' ').length > MAX_REFERENCES_CHARS;
  if (!isLong) return ids;
  const [first = '', ...rest] = ids;
  let kept = rest.slice(-(MAX_REFERENCES - 2));
  while (kept.length > 1 && [first, ...kept].join(' ').length > MAX_REFERENCES_CHARS) {
    kept = kept.slice(1);
  }
  return [first, ...kept];
}

/** Reply marks of the common mail programs: Re, German AW, Scandinavian SV, Chinese 回复 ... */
const REPLY_MARK =
  /^\s*(re|aw|antw|antwort|sv|vs|res|rif|r|odp|ynt|回复|回覆|答复|返信)\s*(\[\d+\])?\s*[:：]\s*/i;

/** The subject without reply marks, for comparison (RFC 5256 section 2.1). */
export function baseSubject(subject: string): string {
  let base = cleanSubject(subject);
  while (REPLY_MARK.test(base)) base = base.replace(REPLY_MARK, '');
  return base.trim();
}

/** The parent's subject with exactly one reply mark; an existing mark stays as it is. */
export function replySubject(subject: string): string {
  const clean = cleanSubject(subject);
  const mark = REPLY_MARK.exec(clean)?.[0].trim() ?? 'Re:';
  return `${mark} ${baseSubject(clean)}`.trim();
}

function cleanSubject(subject: string): string {
  const line = subject
    .replace(FORMATTING, '')
    .replace(/\p{Cc}+/gu, ' ')
    .replace(/ +/g, ' ');
  return shortened(line.trim(), MAX_SUBJECT_CHARS);
}

/** The content of a Message-ID of this program; the tag authenticates send and thread. */
type OwnMessageId = { readonly send: string; readonly thread: string; readonly tag: string };

const OWN_ID = /^<nb\.([0-9a-f]{16,64})\.([0-9a-f]{8,32})\.([0-9a-f]{16,64})@[^>]+>$/;

export function formatOwnMessageId(id: OwnMessageId, from: string): string {
  return `<nb.${id.send}.${id.thread}.${id.tag}@${domainOf(from)}>`;
}

export function parseOwnMessageId(messageId: string): OwnMessageId | undefined {
  const match = OWN_ID.exec(messageId);
  if (match === null) return undefined;
  const [, send = '', thread = '', tag = ''] = match;
  return { send, thread, tag };
}

/** A thread of one of the mail's parents. */
export type KnownThread = {
  readonly thread: string;
  readonly sender: string;
  /** How well the sender who opened it was proven. */
  readonly level: Verification;
};

const RANK: Readonly<Record<Verification, number>> = { unverified: 0, asserted: 1, verified: 2 };

/**
 * The thread a mail continues: that of the nearest parent shared with this very sender. A mail of a
 * weaker level does not enter a thread that a better proven sender opened, so nobody enters by
 * quoting a Message-ID; a subject alone never joins a thread.
 */
export function chooseThread(
  parents: readonly KnownThread[],
  sender: string,
  level: Verification,
): string | undefined {
  const isUnsure = (known: KnownThread) => RANK[level] === 0 && RANK[known.level] > RANK[level];
  return parents.find((known) => known.sender === sender && !isUnsure(known))?.thread;
}

/** Ids of the mails this one answers, nearest first. */
export function parentIds(parent: Pick<ParentMail, 'references' | 'inReplyTo'>): readonly string[] {
  const references = [...messageIdsIn(parent.references)].reverse();
  return [...new Set([...messageIdsIn(parent.inReplyTo), ...references])];
}

// Who besides the sender gets an answer (case E12): nobody, unless configured; then only people on
// the allow list, and nobody if the mail went to many people.

/** A mail to more people is not a conversation. */
const MAX_RECIPIENTS = 20;
/** Most copies of one answer. */
const MAX_COPIES = 5;
const MAX_NAMED = 10;

/** The other people in To and Cc, if the mail was addressed to this mailbox. */
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

/** Those who get a copy of the answer. "*" on the allow list names nobody. */
export function copyRecipients(
  others: readonly string[],
  replyAll: EmailConfig['replyAll'],
  isAuthenticated: boolean,
  allowFrom: readonly string[],
): readonly string[] {
  if (replyAll === 'never' || !isAuthenticated) return [];
  const listed = new Set(allowFrom.map((address) => address.toLowerCase()));
  const people = others.filter((one) => listed.has(one) && !isMachineAddress(one));
  return people.slice(0, MAX_COPIES);
}

/** Tells the model who reads the answer: it must not write to one person what others see. */
export function recipientNote(others: readonly string[], copies: readonly string[]): string {
  if (others.length === 0) return '';
  const named = others.slice(0, MAX_NAMED).join(', ');
  const more = others.length > MAX_NAMED ? ` and ${others.length - MAX_NAMED} more` : '';
  const readers = copies.length === 0 ? 'the sender only' : `the sender and ${copies.join(', ')}`;
  return `[sent to ${named}${more} too; your answer goes to ${readers}]`;
}

// The answered mail, quoted below the answer: bounded, and plain text in the HTML part too.

/** The mail is in the person's own mailbox; the quote is only a reminder. */
const MAX_QUOTE_CHARS = 4_000;
const QUOTE_STYLE = 'margin:0 0 0 0.8ex;border-left:1px solid #ccc;padding-left:1ex';

export type MailQuote = {
  /** E.g. `On Thu, 15 Jan 2026 at 12:00 UTC, Anna <anna@person.test> wrote:`. */
  readonly attribution: string;
  readonly text: string;
};

type QuotedMail = {
  readonly address: string;
  /** Display name, one line. */
  readonly name: string | undefined;
  /** Epoch milliseconds. */
  readonly sentAt: number;
  /** Visible characters only. */
  readonly text: string;
};

/** Undefined if the mail has no text to quote. */
export function quoteOf(mail: QuotedMail): MailQuote | undefined {
  const text = mail.text.trim();
  if (text === '') return undefined;
  const [weekday = '', day, month, year, time = ''] = new Date(mail.sentAt)
    .toUTCString()
    .split(' ');
  const when = `${weekday} ${day} ${month} ${year} at ${time.slice(0, 5)} UTC`;
  // Angle brackets and colons in a name would break the separators by which quotes are cut.
  const name = mail.name?.replace(/[<>:]/g, '').trim() ?? '';
  const who = name === '' ? mail.address : `${name} <${mail.address}>`;
  return { attribution: `On ${when}, ${who} wrote:`, text: boundedText(text, MAX_QUOTE_CHARS) };
}

export function quoteAsText({ attribution, text }: MailQuote): string {
  const lines = text.split('\n').map((line) => {
    if (line === '') return '>';
    return line.startsWith('>') ? `>${line}` : `> ${line}`;
  });
  return [attribution, ...lines].join('\n');
}

export function quoteAsHtml({ attribution, text }: MailQuote): string {
  const words = escapeHtml(text).replaceAll('\n', '<br>\n');
  return `<p>${escapeHtml(attribution)}</p>\n<blockquote type="cite" style="${QUOTE_STYLE}">${words}</blockquote>\n`;
}
