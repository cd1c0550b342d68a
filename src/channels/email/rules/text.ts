// The text of a mail as the model sees it: visible characters only, bounded, and honest about what
// was left out (cases E22, E23, J04).

import { cutBefore, headOf } from '../../../lib/text/cut.ts';
import type { StrippedMail } from './quotes.ts';

/** What is looked at of a mail's text before quotes are cut, characters. */
export const MAX_WHOLE_TEXT_CHARS = 256 * 1024;
/** Longest own text of one mail, characters. */
const MAX_TEXT_CHARS = 100_000;
/** How much of a quoted mail gives context; a forwarded one is the point itself. */
const MAX_QUOTE_CHARS = 2_000;
const MAX_FORWARD_CHARS = 20_000;
const MAX_CALENDAR_CHARS = 8_000;
const MAX_NAMED_ATTACHMENTS = 10;
/** For the most part logos of signatures. */
const MAX_NAMED_INLINE = 3;
const MAX_LABEL_CHARS = 100;

/** Zero-width, bidirectional and tag characters, and controls; joiners of scripts and emoji stay. */
const INVISIBLE = /(?![\n\t\u200C\u200D])[\p{Cc}\p{Cf}]/gu;

export function visibleText(text: string): string {
  const visible = text.replace(/\r\n?/g, '\n').replace(INVISIBLE, '');
  // Line by line: an expression for blanks at line ends takes quadratic time on long runs.
  const lines = visible.split('\n').map((line) => line.trimEnd());
  return lines.join('\n').replace(/\n{4,}/g, '\n\n\n');
}

export function boundedText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const end = cutBefore(text, maxChars);
  const omitted = (text.length - end).toLocaleString('en-US');
  return `${text.slice(0, end)}\n[truncated, ${omitted} characters omitted]`;
}

export type AttachedPart = {
  readonly name: string;
  readonly type: string;
  readonly bytes: number;
  /** Shown by mail programs inside the text, a picture for the most part. */
  readonly isInline: boolean;
};

/** A line per attachment, so that the model can say honestly that it has not read it. */
function attachmentNotes(parts: readonly AttachedPart[]): readonly string[] {
  const attached = parts.filter((part) => !part.isInline);
  const inline = parts.filter((part) => part.isInline);
  return [
    ...notesOf(attached, MAX_NAMED_ATTACHMENTS, 'attachment'),
    ...notesOf(inline, MAX_NAMED_INLINE, 'inline part'),
  ];
}

function notesOf(parts: readonly AttachedPart[], maximum: number, kind: string): readonly string[] {
  const named = parts.slice(0, maximum).map(({ name, type, bytes }) => {
    const label = headOf(visibleText(name).replace(/\s+/g, ' '), MAX_LABEL_CHARS);
    const size = bytes.toLocaleString('en-US');
    const what = kind === 'inline part' && type.startsWith('image/') ? 'inline image' : kind;
    return `[${what}, not read: ${label} (${type}, ${size} bytes)]`;
  });
  const more = parts.length - named.length;
  return more > 0 ? [...named, `[${more} more ${kind}s, not read]`] : named;
}

/** The words of the two versions of a mail have little in common: somebody sees another text. */
export function partsDiffer(plain: string, html: string): boolean {
  const words = (text: string) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []);
  const inPlain = [...words(plain)];
  const inHtml = words(html);
  if (inPlain.length < 5 || inHtml.size === 0) return false;
  return inPlain.filter((word) => inHtml.has(word)).length < inPlain.length / 2;
}

export type ReadableMail = {
  readonly subject: string;
  readonly stripped: StrippedMail;
  readonly attachments: readonly AttachedPart[];
  /** Its calendar entries, in words. */
  readonly calendars: readonly string[];
  /** The first mail of its thread: the subject is part of what was said. */
  readonly isFirst: boolean;
  readonly partsDiffer: boolean;
  /** Who else reads this conversation; empty where nobody does. */
  readonly recipients: string;
};

export type MailForModel = { readonly text: string; readonly quoted?: string };

/** The subject line; a command is one whether it stands in the text or, alone, in the subject. */
function titleOf(subject: string, isFirst: boolean, isAlone: boolean): string {
  if (isAlone && subject.startsWith('/')) return subject;
  return isFirst && subject !== '' ? `Subject: ${subject}` : '';
}

/** Session history holds the thread already, so quotes are shown for first mails and forwards. */
export function composeMailText(mail: ReadableMail): MailForModel {
  const { stripped } = mail;
  const body = boundedText(stripped.text, MAX_TEXT_CHARS);
  const subject = visibleText(mail.subject).replace(/\s+/g, ' ').trim();
  const blocks = [
    body.startsWith('/') ? '' : titleOf(subject, mail.isFirst, body === ''),
    body,
    body.startsWith('/') ? '' : mail.recipients,
    mail.partsDiffer ? '[the HTML version of this mail says something else]' : '',
    boundedText(mail.calendars.join('\n\n'), MAX_CALENDAR_CHARS),
    attachmentNotes(mail.attachments).join('\n'),
  ];
  const text = blocks.filter((block) => block !== '').join('\n\n');
  const { quoted } = stripped;
  if (quoted === undefined || !(mail.isFirst || stripped.isForward)) return { text };
  const maxChars = stripped.isForward ? MAX_FORWARD_CHARS : MAX_QUOTE_CHARS;
  return { text, quoted: boundedText(quoted, maxChars) };
}
