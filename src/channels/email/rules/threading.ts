// Threads of mail (case table D2): which conversation a mail continues, what an answer's headers and quote
// say so that every mail program shows it in place (RFC 5322 section 3.6.4), and which other recipients get a
// copy (case E12).

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
  /** `<id@domain>`; undefined where the mail had none. */
  readonly messageId?: string | undefined;
  readonly references?: string | undefined;
  readonly inReplyTo?: string | undefined;
  readonly subject: string;
  /** Whom the mail went to besides us. */
  readonly others?: readonly string[];
};

const MAX_REFERENCES = 20;
const MAX_REFERENCES_CHARS = 900;
/** With its field name on one line, which may have 998 (RFC 5322 section 2.1.1). */
const MAX_SUBJECT_CHARS = 900;
/** What lines the signs of emoji, Persian and Hindi up, and marks where words may break or turn. */
const FORMATTING = /(?![\u00AD\u200C-\u200F])\p{Cf}/gu;

/** An id of other signs is not repeated: our mail goes out as ASCII. */
const PLAIN_ID = /^[\x21-\x7e]+$/;

/** The mail that an answer names as its parent; undefined where it has no id that can be named. */
export function replyParent({ messageId = '' }: ParentMail): string | undefined {
  return PLAIN_ID.test(messageId) ? messageId : undefined;
}

/** The answer's References: the parent's ancestors and the parent, middle ones left out. */
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

/** The subject without reply marks, for comparing (RFC 5256 section 2.1). */
export function baseSubject(subject: string): string {
  let base = cleanSubject(subject);
  while (REPLY_MARK.test(base)) base = base.replace(REPLY_MARK, '');
  return base.trim();
}

/** The parent's subject with exactly one reply mark; the parent's own mark is kept as it is. */
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

/** What a Message-ID of ours says: the send, the thread, and the tag that proves both. */
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

/** A thread one of the mail's parents belongs to. */
export type KnownThread = {
  readonly thread: string;
  readonly sender: string;
  /** How sure we were of the sender who opened it. */
  readonly level: Verification;
};

const RANK: Readonly<Record<Verification, number>> = { unverified: 0, asserted: 1, verified: 2 };

/**
 * The thread a mail continues: that of the nearest parent we share with this very sender. A mail
 * of a weaker level does not enter a thread that a surer one opened, so nobody slips in by quoting
 * our Message-ID; a subject alone never joins anything.
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

// Who besides the sender gets an answer (case E12): nobody, unless it is configured; then people the
// allow list names, never more, and nobody at all where a mail went to a crowd.

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
  replyAll: EmailConfig['replyAll'],
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

// The mail that is answered, quoted below the answer as people's mail programs do it: bounded, and
// plain words in the HTML part too.

/** The mail lies in the person's own mailbox; a quote only has to remind of it. */
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

/** Undefined where the mail has no text to quote. */
export function quoteOf(mail: QuotedMail): MailQuote | undefined {
  const text = mail.text.trim();
  if (text === '') return undefined;
  const [weekday = '', day, month, year, time = ''] = new Date(mail.sentAt)
    .toUTCString()
    .split(' ');
  const when = `${weekday} ${day} ${month} ${year} at ${time.slice(0, 5)} UTC`;
  // Angle brackets and colons in a name would break what other programs cut a quote by.
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
