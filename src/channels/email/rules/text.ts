// The text of a mail as the model sees it: visible characters only, bounded, with a note about what
// was left out (cases E22, E23, J04), and without the quote below it. Quotes are cut only at
// separators that known mail programs write.

import { type AttachedPart, attachmentNotes } from '../../../lib/mail/rules/attached.ts';
import { safeHref } from '../../../lib/markup/markup.ts';
import {
  decodeReferences,
  escapeHtml,
  lexMarkdown,
  Parser,
  Renderer,
  type Tokens,
} from '../../../lib/markup/writer.ts';
import { cutBefore, oneLine, visibleText } from '../../../lib/text/cut.ts';

/** Longest own text of one mail, characters. */
const MAX_TEXT_CHARS = 100_000;
/** Characters of a quoted mail that are kept as context; a forwarded mail is the subject itself. */
const MAX_QUOTE_CHARS = 2_000;
const MAX_FORWARD_CHARS = 20_000;
const MAX_CALENDAR_CHARS = 8_000;

export function boundedText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const end = cutBefore(text, maxChars);
  const omitted = (text.length - end).toLocaleString('en-US');
  return `${text.slice(0, end)}\n[truncated, ${omitted} characters omitted]`;
}

/** The two versions of a mail share little text: people see a different text than the model. */
export function partsDiffer(plain: string, html: string): boolean {
  const words = (text: string) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []);
  const inPlain = [...words(plain)];
  const inHtml = words(html);
  if (inPlain.length < 5 || inHtml.size === 0) return false;
  return inPlain.filter((word) => inHtml.has(word)).length < inPlain.length / 2;
}

type ReadableMail = {
  readonly subject: string;
  readonly stripped: StrippedMail;
  readonly attachments: readonly AttachedPart[];
  /** Its calendar entries as text. */
  readonly calendars: readonly string[];
  /** The first mail of its thread: its subject is part of the message. */
  readonly isFirst: boolean;
  readonly partsDiffer: boolean;
  /** Who else reads this conversation; empty for nobody. */
  readonly recipients: string;
};

export type MailForModel = { readonly text: string; readonly quoted?: string };

/** The subject line; a command is recognised in the text or, alone, in the subject. */
function titleOf(subject: string, isFirst: boolean, isAlone: boolean): string {
  if (isAlone && subject.startsWith('/')) return subject;
  return isFirst && subject !== '' ? `Subject: ${subject}` : '';
}

/** The session history holds the thread, so quotes are shown only for first mails and forwards. */
export function composeMailText(mail: ReadableMail): MailForModel {
  const { stripped } = mail;
  const body = boundedText(stripped.text, MAX_TEXT_CHARS);
  const subject = oneLine(visibleText(mail.subject));
  const blocks = [
    body.startsWith('/') ? '' : titleOf(subject, mail.isFirst, body === ''),
    body,
    body.startsWith('/') ? '' : mail.recipients,
    mail.partsDiffer ? '[the HTML version of this mail differs]' : '',
    boundedText(mail.calendars.join('\n\n'), MAX_CALENDAR_CHARS),
    attachmentNotes(mail.attachments).join('\n'),
  ];
  const text = blocks.filter((block) => block !== '').join('\n\n');
  const { quoted } = stripped;
  if (quoted === undefined || !(mail.isFirst || stripped.isForward)) return { text };
  const maxChars = stripped.isForward ? MAX_FORWARD_CHARS : MAX_QUOTE_CHARS;
  return { text, quoted: boundedText(quoted, maxChars) };
}

// What the person wrote in this mail, without the quote that their program added. Cuts only at
// separators that known mail programs write; doubtful parts stay, and an answer written between
// quoted lines stays whole (case E24).

export type StrippedMail = {
  /** The person's own text. */
  readonly text: string;
  /** The text below the separator: untrusted content. */
  readonly quoted?: string;
  /** The quoted part is the subject of the mail, not its history. */
  readonly isForward: boolean;
};

type Cut = { readonly at: number; readonly isForward: boolean };

const ATTRIBUTIONS: readonly RegExp[] = [
  /^on\b.{4,300}\bwrote\s*:$/i,
  /^.{0,200}\b(wrote|schrieb|schreef|skrev)\b.{0,120}\d.{0,120}:$/i,
  /^am\b.{4,300}\bschrieb\b.{0,200}:$/i,
  /^le\b.{4,300}\ba écrit\s*:$/i,
  /^el\b.{4,300}\bescribió\s*:$/i,
  /^il\b.{4,300}\bha scritto\s*:$/i,
  /^(em|no dia)\b.{4,300}\bescreveu\s*:$/i,
  /^op\b.{4,300}\bschreef\b.{0,200}:$/i,
  /^(den|tirsdag|.{2,12}dag)\b.{4,300}\bskrev\b.{0,200}:$/i,
  /^w dniu\b.{4,300}\bnapisał\(?a?\)?\s*:$/i,
  /^.{4,300}\sнаписал\(?а?\)?\s*:$/i,
  /^\d{4}年.{4,300}(写道|のメール|：|:)$/,
  /^.{4,300}写道\s*[:：]$/,
  /^.{4,300}さんは書きました\s*[:：]$/,
];

const ORIGINAL =
  /^[-_*\s]{0,12}(original message|original appointment|ursprüngliche nachricht|message d['’]origine|mensaje original|messaggio originale|mensagem original|oorspronkelijk bericht|元のメッセージ|原始邮件)[-_*\s]{0,12}$/i;
const FORWARDED =
  /^[-_*\s]{0,12}(forwarded message|weitergeleitete nachricht|message transféré|mensaje reenviado|messaggio inoltrato|doorgestuurd bericht|begin forwarded message|anfang der weitergeleiteten (nachricht|e-mail)|début du message (transféré|réexpédié)|転送されたメッセージ|转发的邮件)\s*:?[-_*\s]{0,12}$/i;
const HEADER_FROM = /^\*?(from|von|de|da|van|från|fra|od|差出人|发件人)\s?\*?\s*[:：]/i;
const HEADER_OTHER =
  /^\*?(sent|date|to|subject|gesendet|datum|an|betreff|envoyé|à|objet|enviado|para|asunto|inviato|a|oggetto|verzonden|aan|onderwerp|skickat|till|ämne|sendt|til|emne|送信日時|宛先|件名|发送时间|收件人|主题)\s?\*?\s*[:：]/i;
const SIGNATURE = /^-- ?$/;
const DEVICE_LINE =
  /^(sent from (my|mail|outlook|yahoo)\b.*|get outlook for .*|von meinem .{2,40} gesendet\.?|gesendet (von|mit) .{2,60}|diese nachricht wurde von meinem .*|outlook für (ios|android) .*|envoyé (de|depuis) .{2,60}|enviado desde .{2,60}|inviato da .{2,60}|verstuurd vanaf .{2,60}|skickat från .{2,60})$/i;

/** Most lines between a separator and its continuation. */
const LOOKAHEAD_LINES = 4;
/** Below each of them all of the mail is looked at. */
const MAX_ATTRIBUTIONS = 100;

export function stripQuotes(mail: string): StrippedMail {
  const lines = mail.replace(/\r\n?/g, '\n').split('\n');
  const cut = findCut(lines);
  const own = cut === undefined ? lines : lines.slice(0, cut.at);
  const rest = cut === undefined ? [] : lines.slice(cut.at);
  const { kept, trailing } = splitTrailingQuote(own);
  const text = withoutSignature(kept).join('\n').trim();
  const quoted = [...trailing, ...rest].join('\n').trim();
  const isForward = cut?.isForward ?? false;
  // If nothing of the person's own is left, the quote or the signature is all they sent.
  if (text === '' && !isForward) return { text: mail.trim(), isForward: false };
  return { text, ...(quoted === '' ? {} : { quoted }), isForward };
}

function findCut(lines: readonly string[]): Cut | undefined {
  let attributions = 0;
  for (const [index, line] of lines.entries()) {
    const text = line.trim();
    if (text === '' || text.startsWith('>')) continue;
    if (FORWARDED.test(text)) return { at: index, isForward: true };
    if (ORIGINAL.test(text)) return { at: index, isForward: false };
    if (isHeaderBlock(lines, index)) return { at: startOfBlock(lines, index), isForward: false };
    const length = attributions < MAX_ATTRIBUTIONS ? attributionLength(lines, index) : 0;
    if (length === 0) continue;
    attributions += 1;
    if (isTopPosted(lines, index, index + length)) return { at: index, isForward: false };
  }
  return undefined;
}

/** `From:` and at least two more header-like lines directly below, as Outlook writes them. */
function isHeaderBlock(lines: readonly string[], index: number): boolean {
  if (!HEADER_FROM.test(lines[index]?.trim() ?? '')) return false;
  const next = lines.slice(index + 1, index + 1 + LOOKAHEAD_LINES + 1);
  return next.filter((line) => HEADER_OTHER.test(line.trim())).length >= 2;
}

/** Outlook draws a line above its header block. */
function startOfBlock(lines: readonly string[], index: number): number {
  let start = index;
  while (start > 0 && /^[\s_-]*$/.test(lines[start - 1] ?? '')) start -= 1;
  return start;
}

/** Number of lines of an attribution that starts here: programs fold it over two or three. */
function attributionLength(lines: readonly string[], index: number): number {
  for (let length = 1; length <= 3; length += 1) {
    const part = lines.slice(index, index + length);
    if (part.some((line) => line.trim() === '' || line.startsWith('>'))) return 0;
    const text = part.map((line) => line.trim()).join(' ');
    if (/\d/.test(text) && ATTRIBUTIONS.some((pattern) => pattern.test(text))) return length;
  }
  return 0;
}

/**
 * Everything below the attribution is quotation. If the program marks quoted lines with `>`, one
 * unmarked line is an answer between the quotes; if it does not, only an attribution with an
 * address or a full date is reliable.
 */
function isTopPosted(lines: readonly string[], from: number, below: number): boolean {
  const rest = withoutSignature(lines.slice(below)).filter((line) => line.trim() !== '');
  if (rest.length === 0) return true;
  if (rest.some((line) => line.startsWith('>'))) {
    return rest.every((line) => line.startsWith('>'));
  }
  const attribution = lines.slice(from, below).join(' ');
  return /@/.test(attribution) || /\b\d{4}\b.*\d{1,2}[:.]\d{2}/.test(attribution);
}

/** Quoted lines at the very end, with the attribution above them if there is one. */
function splitTrailingQuote(lines: readonly string[]): {
  readonly kept: readonly string[];
  readonly trailing: readonly string[];
} {
  let start = lines.length;
  while (start > 0 && /^(>.*|\s*)$/.test(lines[start - 1] ?? '')) start -= 1;
  const trailing = lines.slice(start);
  const hasQuote = trailing.some((line) => line.startsWith('>'));
  const hasQuoteAbove = lines.slice(0, start).some((line) => line.startsWith('>'));
  // Quoted lines above as well: an answer between the quotes, kept whole.
  if (!hasQuote || hasQuoteAbove) return { kept: lines, trailing: [] };
  return { kept: lines.slice(0, start), trailing };
}

function withoutSignature(lines: readonly string[]): readonly string[] {
  const mark = lines.findIndex((line) => SIGNATURE.test(line));
  const body = mark > 0 ? lines.slice(0, mark) : [...lines];
  let end = body.length;
  while (end > 0 && (body[end - 1] ?? '').trim() === '') end -= 1;
  if (end > 1 && DEVICE_LINE.test((body[end - 1] ?? '').trim())) end -= 1;
  return body.slice(0, end);
}

// Renders Markdown as the HTML part of a mail. Every text is escaped, raw HTML is shown as written,
// and only web and mail addresses become links, so that nothing a model writes is active in a mail
// reader.

const CELL = 'border:1px solid #ccc;padding:4px 8px';
const CODE = 'background:#f5f5f5;padding:8px;white-space:pre-wrap';

/** A fragment without `<html>` or `<body>`. */
export const renderEmailHtml = (markdown: string): string =>
  new Parser({ renderer: new MailRenderer() }).parse([...lexMarkdown(markdown)]);

const lines = (text: string) => escapeHtml(text).replaceAll('\n', '<br>\n');

class MailRenderer extends Renderer {
  override code({ text }: Tokens.Code): string {
    return `<pre style="${CODE}"><code>${escapeHtml(text)}</code></pre>\n`;
  }

  override codespan({ text }: Tokens.Codespan): string {
    return `<code>${escapeHtml(text)}</code>`;
  }

  override html({ raw, block }: Tokens.HTML | Tokens.Tag): string {
    if (block) return `<p>${lines(raw.trimEnd())}</p>\n`;
    return /^<br *\/?>$/i.test(raw) ? '<br>\n' : lines(raw);
  }

  override def({ raw }: Tokens.Def): string {
    return `<p>${lines(raw.trimEnd())}</p>\n`;
  }

  override table({ header, rows }: Tokens.Table): string {
    const row = (cells: readonly Tokens.TableCell[], tag: 'th' | 'td') => {
      const html = cells.map(({ align, tokens }) => {
        const aligned = align === null ? '' : `;text-align:${align}`;
        return `<${tag} style="${CELL}${aligned}">${this.parser.parseInline(tokens)}</${tag}>`;
      });
      return `<tr>${html.join('')}</tr>\n`;
    };
    const body = rows.map((cells) => row(cells, 'td')).join('');
    return `<table style="border-collapse:collapse">\n${row(header, 'th')}${body}</table>\n`;
  }

  override br(): string {
    return '<br>\n';
  }

  override checkbox({ checked }: Tokens.Checkbox): string {
    return checked ? '☑ ' : '☐ ';
  }

  override text(token: Tokens.Text | Tokens.Escape): string {
    if (token.type === 'escape') return lines(token.text);
    if (token.tokens !== undefined) return this.parser.parseInline(token.tokens);
    return lines(token.escaped ? token.text : decodeReferences(token.text));
  }

  override link(token: Tokens.Link | Tokens.Image): string {
    const href = safeHref(token.href);
    const label = this.parser.parseInline(token.tokens) || lines(token.text || token.href);
    if (href === undefined) return token.href === '' ? label : `${label} (${lines(token.href)})`;
    return `<a href="${escapeHtml(href)}">${label}</a>`;
  }

  /** A link to the image: opening a mail must not load anything. */
  override image(token: Tokens.Image): string {
    return this.link(token);
  }
}
