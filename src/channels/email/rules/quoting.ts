// The mail that is answered, quoted below the answer as people's mail programs do it: bounded, and
// plain words in the HTML part too.

import { escapeHtml } from '../../../lib/markup/writer.ts';
import { boundedText } from './text.ts';

/** The mail lies in the person's own mailbox; a quote only has to remind of it. */
const MAX_QUOTE_CHARS = 4_000;
const QUOTE_STYLE = 'margin:0 0 0 0.8ex;border-left:1px solid #ccc;padding-left:1ex';

export type MailQuote = {
  /** E.g. `On Thu, 15 Jan 2026 at 12:00 UTC, Anna <anna@person.test> wrote:`. */
  readonly attribution: string;
  readonly text: string;
};

export type QuotedMail = {
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
