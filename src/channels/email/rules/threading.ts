// Threads of mail (case table D2): which conversation a mail continues, and what an answer's
// headers say so that every mail program shows it in place (RFC 5322 section 3.6.4).

import type { Verification } from '../../../kernel/message/message.ts';
import { shortened } from '../../../lib/text/cut.ts';
import { domainOf } from './address.ts';
import { messageIdsIn } from './headers.ts';

export type ParentMail = {
  /** `<id@domain>`; undefined where the mail had none. */
  readonly messageId?: string;
  readonly references?: string;
  readonly inReplyTo?: string;
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
export type OwnMessageId = { readonly send: string; readonly thread: string; readonly tag: string };

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
