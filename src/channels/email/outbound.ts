// An answer as bytes. Message-ID, date and boundary are fixed in its record before the first try, so that a
// second try is the same mail.

import { createHash } from 'node:crypto';
import MailComposer from 'nodemailer/lib/mail-composer';
import { fileNameOf, withoutFiles } from '../../kernel/delivery/undelivered.ts';
import type { MediaStore } from '../../kernel/media/media.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import { renderPlain } from '../../lib/markup/markup.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { OutgoingRecord } from './mail-records.ts';
import type { MailRegister } from './mail-register.ts';
import { OWN_MARK_HEADER } from './rules/machine-mail.ts';
import { renderEmailHtml } from './rules/markup.ts';
import {
  formatOwnMessageId,
  type MailQuote,
  type ParentMail,
  quoteAsHtml,
  quoteAsText,
  replyParent,
  replyReferences,
  replySubject,
} from './rules/threading.ts';

const SEND_HEX_CHARS = 32;
const THREAD_HEX_CHARS = 16;
const MAX_OPENING_CHARS = 70;

export type OutgoingMail = {
  readonly message: OutboundMessage;
  readonly packed: Packed;
  readonly record: OutgoingRecord;
  readonly thread: string;
  readonly recipient: string;
  readonly from: string;
  readonly quote: MailQuote | undefined;
};

/** Decides who gets a copy, of an answer from the mail that is answered. */
export type ChooseCopies = (parent: ParentMail | undefined) => Promise<readonly string[]>;

const digest = (text: string, hexChars: number) =>
  createHash('sha256').update(text).digest('hex').slice(0, hexChars);

/** The thread an outbound message belongs to; one outside any thread opens its own. */
export const threadOf = (message: OutboundMessage): string =>
  message.chat.thread ?? digest(message.id, THREAD_HEX_CHARS);

/** The record of this answer: made on the first try, the time noted on every one. */
export async function outgoingRecord(
  message: OutboundMessage,
  from: string,
  now: number,
  register: MailRegister,
  chooseCopies: ChooseCopies,
): Promise<OutgoingRecord> {
  const known = await register.outgoing(message.id);
  if (known?.isSent) return known;
  const made = known ?? (await newRecord());
  const record = { ...made, triedAt: now };
  await register.noteOutgoing(message.id, record);
  return record;

  async function newRecord() {
    const thread = threadOf(message);
    const answered = message.replyTo && (await register.parent(message.replyTo));
    const parent = answered ?? (await register.thread(thread))?.parent;
    const inReplyTo = parent && replyParent(parent);
    const send = digest(message.id, SEND_HEX_CHARS);
    const tag = register.tag(thread, message.chat.chat);
    return {
      messageId: formatOwnMessageId({ send, thread, tag }, from),
      dateMs: now,
      subject: message.subject ?? subjectOf(message, parent),
      ...(inReplyTo === undefined ? {} : { inReplyTo }),
      references: parent === undefined ? [] : replyReferences(parent),
      copies: await chooseCopies(parent),
      isSent: false,
    };
  }
}

const subjectOf = (message: OutboundMessage, parent: ParentMail | undefined) =>
  parent === undefined ? openingOf(message) : replySubject(parent.subject);

function openingOf({ markdown, attachments = [] }: OutboundMessage): string {
  const line =
    renderPlain(markdown === '' ? (attachments[0]?.name ?? '') : markdown)
      .trim()
      .split('\n', 1)[0] ?? '';
  return shortened(line, MAX_OPENING_CHARS);
}

/** RFC 3834 section 5.1: how a machine's mail says that it is one. */
export async function composeMail(mail: OutgoingMail): Promise<Buffer> {
  const { message, packed, record, recipient, from, quote } = mail;
  // A mail without a Message-ID is answered all the same.
  const isAnswer =
    message.replyTo !== undefined || record.references.length > 0 || record.inReplyTo !== undefined;
  const text = renderPlain(packed.markdown);
  const html = renderEmailHtml(packed.markdown) + (quote === undefined ? '' : quoteAsHtml(quote));
  const composer = new MailComposer({
    from,
    to: recipient,
    cc: [...(record.copies ?? [])],
    subject: record.subject,
    messageId: record.messageId,
    date: new Date(record.dateMs),
    ...(record.inReplyTo === undefined ? {} : { inReplyTo: record.inReplyTo }),
    references: [...record.references],
    headers: {
      ...(message.isDictated === true
        ? {}
        : {
            'Auto-Submitted': isAnswer ? 'auto-replied' : 'auto-generated',
            'X-Auto-Response-Suppress': 'All',
          }),
      [OWN_MARK_HEADER]: digest(message.id, SEND_HEX_CHARS),
    },
    text: quote === undefined ? text : `${text.trimEnd()}\n\n${quoteAsText(quote)}\n`,
    html: `<!doctype html>\n<html><body style="font-family:sans-serif">\n${html}</body></html>\n`,
    attachments: packed.files.map(({ name, type, content }) => ({
      filename: name,
      contentType: type,
      content: Buffer.from(content.buffer, content.byteOffset, content.byteLength),
    })),
    baseBoundary: digest(message.id, SEND_HEX_CHARS),
    disableFileAccess: true,
    disableUrlAccess: true,
    newline: '\r\n',
  });
  return composer.compile().build();
}

// The files of an answer on their way into its mail: read from the store, and what is no longer
// there, or more than servers take in one mail, said in the text instead.

/** RFC 2045 section 5.1: anything else would end the header field. */
const MIME_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/;

/**
 * Of all files of one mail. Most servers take 20 to 25 MB, and base64 makes a third more of a file (RFC
 * 2045 section 6.8); one that does not would keep the text too.
 */
export const MAX_UPLOAD_BYTES = 15_000_000;

export type MailFile = {
  readonly name: string;
  readonly type: string;
  readonly content: Uint8Array;
};

export type Packed = {
  /** With the files' captions below, and a line for each file that stays behind. */
  readonly markdown: string;
  readonly files: readonly MailFile[];
};

export async function packFiles(message: OutboundMessage, media: MediaStore): Promise<Packed> {
  const files: MailFile[] = [];
  const lost: OutboundAttachment[] = [];
  const captions: string[] = [];
  let bytes = 0;
  for (const attachment of message.attachments ?? []) {
    const fits = bytes + attachment.sizeBytes <= MAX_UPLOAD_BYTES;
    const content = fits ? await media.read(attachment.media) : undefined;
    if (content === undefined) {
      lost.push(attachment);
      continue;
    }
    bytes += content.length;
    const name = fileNameOf(attachment.name);
    const { mimeType, caption } = attachment;
    const type = MIME_TYPE.test(mimeType) ? mimeType : 'application/octet-stream';
    files.push({ name, type, content });
    if (caption !== undefined) captions.push(`${name}: ${caption}`);
  }
  const { markdown } = withoutFiles({ ...message, attachments: lost });
  return { markdown: [markdown, ...captions].filter((part) => part !== '').join('\n\n'), files };
}
