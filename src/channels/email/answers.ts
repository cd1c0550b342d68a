// Sends answers: checks the recipient, applies the limits, composes the mail and submits it by
// SMTP. Every step is recorded, so that neither a crash nor a retry makes two mails of one answer.

import { createHash } from 'node:crypto';
import MailComposer from 'nodemailer/lib/mail-composer';
import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import { fileNameOf, mediaUnavailable, withoutFiles } from '../../kernel/delivery/undelivered.ts';
import type { MediaStore } from '../../kernel/media/media.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import { after, DeliveryError, FORBIDDEN, NEVER, notSent } from '../../kernel/message/errors.ts';
import { type AccountRef, accountPath, nativeId } from '../../kernel/message/ids.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import { renderPlain } from '../../lib/markup/markup.ts';
import { shortened } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost } from '../channel.ts';
import { TOKEN_REFUSED } from './access-tokens.ts';
import type { MailAccount } from './connection-settings.ts';
import { digest, type MailRegister, type OutgoingRecord } from './mail-register.ts';
import type { ReplyLimits } from './reply-limits.ts';
import { normalizeAddress } from './rules/address.ts';
import type { SentReply } from './rules/budget.ts';
import { OWN_MARK_HEADER } from './rules/machine-mail.ts';
import { renderEmailHtml } from './rules/text.ts';
import {
  copyRecipients,
  formatOwnMessageId,
  type MailQuote,
  type ParentMail,
  quoteAsHtml,
  quoteAsText,
  replyParent,
  replyReferences,
  replySubject,
} from './rules/threading.ts';
import type { EmailConfig } from './settings.ts';
import { SMTP_AUTH_REFUSED, sendBySmtp } from './smtp.ts';

/** Refused logins in a row after which the password is not tried for a while. */
const MAX_AUTH_FAILURES = 3;
const AUTH_PAUSE_MS = 3_600_000;

/** The mailbox from which answers are sent. */
type AnswersContext = {
  readonly at: AccountRef;
  readonly config: Pick<EmailConfig, 'replyAll'>;
  readonly host: ChannelHost;
  readonly account: MailAccount;
  readonly register: MailRegister;
  readonly limits: ReplyLimits;
  /** Whether the channel itself stores the copy in the Sent folder. */
  keepsCopies(): boolean;
  /** Signals that copies are waiting to be stored. */
  wake(): void;
  /** The current allow list, in lower case. */
  allowFrom(): readonly string[];
  /** Reports that this refresh token will never give an access token again. */
  tokenRefused(reason: string): void;
};

export class Answers {
  readonly #context: AnswersContext;
  #authFailures = 0;
  #resumeAt = 0;

  constructor(context: AnswersContext) {
    this.#context = context;
  }

  async send(message: OutboundMessage, context: SendContext): Promise<Receipt> {
    const { host, account, register } = this.#context;
    if (isEmpty(message)) return { nativeIds: [] };
    const recipient = normalizeAddress(message.chat.chat);
    if (recipient === undefined || recipient !== message.chat.chat) {
      throw notSent(t`recipient is not a plain mail address`, NEVER, 'mail_recipient');
    }
    const now = host.clock.now();
    const known = await register.outgoing(message.id);
    if (known?.isSent) return receiptOf(known);
    if (context.sentParts.length > 0) return { nativeIds: context.sentParts };
    this.#expectLogin(now);
    const mine = new Set<SentReply>();
    try {
      const reply = await this.#permit(message, recipient, now, mine);
      const made =
        known ??
        (await newRecord(message, account.from, now, register, (parent) =>
          this.#permitCopies(message, parent, reply, mine),
        ));
      const record = { ...made, triedAt: now };
      await register.noteOutgoing(message.id, record);
      const { thread } = reply;
      const quote =
        message.replyTo === undefined ? undefined : await register.quote(message.replyTo);
      const { from } = account;
      const packed = await packFiles(message, host.media);
      const raw = await composeMail({ message, packed, record, thread, recipient, from, quote });
      await this.#submit(recipient, raw, context);
      for (const copy of record.copies ?? []) {
        const isWanted = message.copies?.includes(copy) === true;
        if (isWanted || this.#context.allowFrom().includes(copy))
          await this.#submitCopy(copy, raw, context);
      }
      await this.#note(message, record, reply, raw);
      for (const id of receiptOf(record).nativeIds) await context.partSent(id);
      return receiptOf(record);
    } finally {
      this.#context.limits.release(mine);
    }
  }

  /** @throws DeliveryError where a limit delays or forbids the mail. */
  async #permit(
    message: OutboundMessage,
    recipient: string,
    now: number,
    mine: Set<SentReply>,
  ): Promise<SentReply> {
    const { host } = this.#context;
    const thread = threadOf(message);
    const textHash = hashOf(message);
    const reply = { at: now, recipient, thread, textHash };
    const isLetter = isNoAnswer(message);
    const as = isLetter || message.replyTo === undefined ? 'own' : 'answer';
    const claim = await this.#context.limits.claim(message.id, reply, { isLetter, as });
    if (claim.kind === 'wait') {
      throw notSent(claim.reason, after(claim.until - now), 'mail_limit');
    }
    if (claim.kind === 'refuse') {
      host.log.warn('mail refused by a limit', { messageId: message.id, reason: claim.reason });
      throw notSent(t`limit: ${claim.reason}`, FORBIDDEN, 'mail_limit');
    }
    mine.add(claim.reply);
    return claim.reply;
  }

  /** Counts each copy like an answer; drops a copy that a limit does not allow now. */
  async #permitCopies(
    { id, copies }: OutboundMessage,
    parent: ParentMail | undefined,
    reply: SentReply,
    mine: Set<SentReply>,
  ): Promise<readonly string[]> {
    const wanted = copies ?? (await this.#copiesOf(parent, reply));
    const permitted: string[] = [];
    for (const recipient of wanted) {
      const how = { isLetter: copies !== undefined, as: 'copy' } as const;
      const claim = await this.#context.limits.claim(id, { ...reply, recipient }, how);
      if (claim.kind === 'send') {
        permitted.push(recipient);
        mine.add(claim.reply);
      } else if (copies !== undefined) this.#tellLeftOut(recipient);
    }
    return permitted;
  }

  async #copiesOf(parent: ParentMail | undefined, { thread }: SentReply) {
    const { register, config } = this.#context;
    const isProven = ((await register.thread(thread))?.level ?? 'unverified') !== 'unverified';
    const listed = this.#context.allowFrom();
    return copyRecipients(parent?.others ?? [], config.replyAll, isProven, listed);
  }

  #tellLeftOut(recipient: string): void {
    this.#context.host.alert(
      t`The copy of a mail for ${recipient} was not sent: a mail limit is reached.`,
    );
  }

  /** A single try: the answer itself has arrived, and the owner hears of a failed copy. */
  async #submitCopy(recipient: string, raw: Buffer, { signal }: SendContext): Promise<void> {
    const { account, host } = this.#context;
    try {
      await sendBySmtp(account, recipient, raw, signal);
    } catch (error) {
      if (!(error instanceof DeliveryError)) throw error;
      host.log.warn('copy of an answer not sent', { code: error.code, error });
      host.alert(t`The copy of an answer for ${recipient} was not sent.`);
    }
  }

  async #submit(recipient: string, raw: Buffer, context: SendContext): Promise<void> {
    const { signal, attempt } = context;
    try {
      await sendBySmtp(this.#context.account, recipient, raw, signal, attempt);
      this.#authFailures = 0;
    } catch (error) {
      if (!(error instanceof DeliveryError)) throw error;
      if (error.code === SMTP_AUTH_REFUSED) this.#noteRefusal();
      if (error.code === TOKEN_REFUSED) this.#context.tokenRefused(error.message);
      throw error;
    }
  }

  #noteRefusal(): void {
    const { host, at } = this.#context;
    this.#authFailures += 1;
    if (this.#authFailures < MAX_AUTH_FAILURES) return;
    this.#authFailures = 0;
    this.#resumeAt = host.clock.now() + AUTH_PAUSE_MS;
    host.alert(
      t`The SMTP server refuses the login, so answers are waiting. Check ${accountPath(at)}.`,
    );
  }

  #expectLogin(now: number): void {
    if (now >= this.#resumeAt) return;
    throw notSent(t`SMTP log-in was refused`, after(this.#resumeAt - now), SMTP_AUTH_REFUSED);
  }

  async #note(
    message: OutboundMessage,
    record: OutgoingRecord,
    reply: SentReply,
    raw: Buffer,
  ): Promise<void> {
    const { register } = this.#context;
    const { thread, recipient } = reply;
    const level = (await register.thread(thread))?.level ?? 'unverified';
    const { messageId, dateMs, copies = [] } = record;
    const known = { sender: recipient, thread, level, outbound: message.id, copies };
    const copy = this.#context.keepsCopies()
      ? { messageId, dateMs, rawBase64: raw.toString('base64'), tries: 0 }
      : undefined;
    const log = [reply, ...copies.map((copy) => ({ ...reply, recipient: copy }))];
    await register.noteSent(message.id, record, log, known, copy);
    this.#context.limits.answered(thread);
    this.#context.wake();
  }
}

/** A mail that answers no unproven mail: somebody asked for it to be sent, or it opens a thread. */
const isNoAnswer = ({ subject, isDictated, chat }: OutboundMessage) =>
  subject !== undefined || isDictated === true || chat.thread === undefined;

const isEmpty = ({ markdown, attachments = [] }: OutboundMessage) =>
  attachments.length === 0 && renderPlain(markdown).trim() === '';

/** Hash of the content of an answer, to detect the same answer sent repeatedly. */
function hashOf({ subject, markdown, attachments = [] }: OutboundMessage): string {
  const hash = createHash('sha256').update(markdown);
  if (subject !== undefined) hash.update(`\n\n${subject}`);
  for (const { media } of attachments) hash.update(`\n${media}`);
  return hash.digest('hex').slice(0, 32);
}

export const receiptOf = (record: OutgoingRecord): Receipt => ({
  nativeIds: [nativeId(record.messageId)],
});

// Composes an answer as bytes. Message-ID, date and boundary are stored in its record before the
// first try, so that a retry is byte-identical.

const SEND_HEX_CHARS = 32;
const THREAD_HEX_CHARS = 16;
const MAX_OPENING_CHARS = 70;

type OutgoingMail = {
  readonly message: OutboundMessage;
  readonly packed: Packed;
  readonly record: OutgoingRecord;
  readonly thread: string;
  readonly recipient: string;
  readonly from: string;
  readonly quote: MailQuote | undefined;
};

/** Chooses who gets a copy of an answer, from the mail that is answered. */
type ChooseCopies = (parent: ParentMail | undefined) => Promise<readonly string[]>;

/** The thread of an outbound message; a message without one opens its own. */
export const threadOf = (message: OutboundMessage): string =>
  message.chat.thread ?? digest(message.id, THREAD_HEX_CHARS);

/** The record of this answer, made on the first try; every try updates its time. */
async function newRecord(
  message: OutboundMessage,
  from: string,
  now: number,
  register: MailRegister,
  chooseCopies: ChooseCopies,
): Promise<OutgoingRecord> {
  const thread = threadOf(message);
  const answered = message.replyTo && (await register.parent(message.replyTo));
  const parent = answered ?? (await register.thread(thread))?.parent;
  const send = digest(message.id, SEND_HEX_CHARS);
  const tag = register.tag(thread, message.chat.chat);
  return {
    messageId: formatOwnMessageId({ send, thread, tag }, from),
    dateMs: now,
    subject: message.subject ?? subjectOf(message, parent),
    inReplyTo: parent && replyParent(parent),
    references: parent === undefined ? [] : replyReferences(parent),
    copies: await chooseCopies(parent),
    triedAt: now,
    isSent: false,
  };
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

/** RFC 3834 section 5.1: marks the mail as automatically generated. */
async function composeMail(mail: OutgoingMail): Promise<Buffer> {
  const { message, packed, record, recipient, from, quote } = mail;
  // A mail without a Message-ID is answered as well.
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
    inReplyTo: record.inReplyTo,
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

// The files of an answer, read from the store for its mail. Files that no longer exist or exceed
// what servers accept in one mail are named in the text instead.

/** RFC 2045 section 5.1: other characters would end the header field. */
const MIME_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/;

/**
 * Total size of the files of one mail. Most servers accept 20 to 25 MB, and base64 adds a third
 * (RFC 2045 section 6.8); a mail over the server's limit would lose its text as well.
 */
export const MAX_UPLOAD_BYTES = 15_000_000;

type MailFile = {
  readonly name: string;
  readonly type: string;
  readonly content: Uint8Array;
};

type Packed = {
  /** The text, followed by the files' captions and a line for each file left out. */
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
    const content = fits ? await media.read(attachment.media).catch(mediaUnavailable) : undefined;
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
