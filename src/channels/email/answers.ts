// Sends answers: checks the recipient, keeps the limits, composes the mail and submits it by SMTP. Every step
// is recorded, so that neither a crash nor a second try makes two mails of one answer.

import { createHash } from 'node:crypto';
import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import { type AccountRef, accountPath } from '../../kernel/message/account.ts';
import { after, DeliveryError, FORBIDDEN, NEVER } from '../../kernel/message/errors.ts';
import { nativeId } from '../../kernel/message/ids.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import { renderPlain } from '../../lib/markup/markup.ts';
import type { ChannelHost } from '../channel.ts';
import { type MailAccount, TOKEN_REFUSED } from './connection-settings.ts';
import type { OutgoingRecord } from './mail-records.ts';
import type { MailRegister } from './mail-register.ts';
import { composeMail, outgoingRecord, packFiles, threadOf } from './outbound.ts';
import type { ReplyLimits } from './reply-limits.ts';
import { normalizeAddress } from './rules/address.ts';
import type { SentReply } from './rules/budget.ts';
import { copyRecipients, type ParentMail } from './rules/threading.ts';
import type { EmailConfig } from './settings.ts';
import { SMTP_AUTH_REFUSED, sendBySmtp } from './smtp.ts';

/** After so many refused log-ins in a row the password is left alone for a while. */
const MAX_AUTH_FAILURES = 3;
const AUTH_PAUSE_MS = 3_600_000;

/** The mailbox that answers are sent from. */
export type AnswersContext = {
  readonly at: AccountRef;
  readonly config: Pick<EmailConfig, 'replyAll'>;
  readonly host: ChannelHost;
  readonly account: MailAccount;
  readonly register: MailRegister;
  readonly limits: ReplyLimits;
  /** Whether we store the copy in the Sent folder ourselves. */
  keepsCopies(): boolean;
  /** Copies wait to be stored. */
  wake(): void;
  /** In lower case, as configured now. */
  allowFrom(): readonly string[];
  /** No access token will ever come again from this refresh token. */
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
      throw refused('recipient is not a plain mail address', 'mail_recipient');
    }
    const now = host.clock.now();
    const known = await register.outgoing(message.id);
    if (known?.isSent) return receiptOf(known);
    if (context.sentParts.length > 0) return { nativeIds: context.sentParts };
    this.#expectLogin(now);
    const mine = new Set<SentReply>();
    try {
      const reply = await this.#permit(message, recipient, now, mine);
      const record = await outgoingRecord(message, account.from, now, register, (parent) =>
        this.#permitCopies(message, parent, reply, mine),
      );
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
      throw notSent(claim.reason, 'mail_limit', after(claim.until - now));
    }
    if (claim.kind === 'refuse') {
      host.log.warn('mail refused by a limit', { messageId: message.id, reason: claim.reason });
      throw notSent(`limit: ${claim.reason}`, 'mail_limit', FORBIDDEN);
    }
    mine.add(claim.reply);
    return claim.reply;
  }

  /** Each copy counts like an answer; one that a limit does not let out now is left out. */
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
    this.#context.host.alert(`The copy of a mail for ${recipient} was not sent: a limit of mails.`);
  }

  /** Tried once: the answer itself has arrived, and the owner hears of a copy that has not. */
  async #submitCopy(recipient: string, raw: Buffer, { signal }: SendContext): Promise<void> {
    const { account, host } = this.#context;
    try {
      await sendBySmtp(account, recipient, raw, signal);
    } catch (error) {
      if (!(error instanceof DeliveryError)) throw error;
      host.log.warn('copy of an answer not sent', { code: error.code, error });
      host.alert(`The copy of an answer for ${recipient} was not sent.`);
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
    host.alert(`The SMTP server refuses the log-in; answers wait. Check ${accountPath(at)}.`);
  }

  #expectLogin(now: number): void {
    if (now >= this.#resumeAt) return;
    throw notSent('SMTP log-in was refused', SMTP_AUTH_REFUSED, after(this.#resumeAt - now));
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

/** Somebody wants it sent, or it begins a thread: no unproven mail is answered by it. */
const isNoAnswer = ({ subject, isDictated, chat }: OutboundMessage) =>
  subject !== undefined || isDictated === true || chat.thread === undefined;

const isEmpty = ({ markdown, attachments = [] }: OutboundMessage) =>
  attachments.length === 0 && renderPlain(markdown).trim() === '';

/** Names what an answer says, so that nobody gets the same again and again. */
function hashOf({ subject, markdown, attachments = [] }: OutboundMessage): string {
  const hash = createHash('sha256').update(markdown);
  if (subject !== undefined) hash.update(`\n\n${subject}`);
  for (const { media } of attachments) hash.update(`\n${media}`);
  return hash.digest('hex').slice(0, 32);
}

export const receiptOf = (record: OutgoingRecord): Receipt => ({
  nativeIds: [nativeId(record.messageId)],
});

function notSent(text: string, code: string, remedy: DeliveryError['remedy']): DeliveryError {
  return new DeliveryError(text, { certainty: 'not_sent', remedy, code });
}

const refused = (text: string, code: string) => notSent(text, code, NEVER);
