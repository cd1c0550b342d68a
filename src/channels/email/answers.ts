// Sends answers: recipient checked, budget kept, mail composed, SMTP tried, and everything noted so
// that neither a crash nor a second try makes two mails of one answer.

import { createHash } from 'node:crypto';
import type { Receipt, SendContext } from '../../bus/bus.ts';
import { after, DeliveryError, NEVER } from '../../core/errors.ts';
import { nativeId } from '../../core/ids.ts';
import { normalizeAddress } from '../../core/mail-address.ts';
import { judgeReply, type SentReply } from '../../core/mail-budget.ts';
import { renderPlain } from '../../core/markup-plain.ts';
import type { OutboundMessage } from '../../core/message.ts';
import type { ChannelHost } from '../channel.ts';
import { TOKEN_REFUSED } from './access-tokens.ts';
import type { MailRegister, OutgoingRecord } from './mail-register.ts';
import { composeMail, outgoingRecord, threadOf } from './outbound.ts';
import type { MailAccount } from './settings.ts';
import { SMTP_AUTH_REFUSED, sendBySmtp } from './smtp.ts';

/** After so many refused log-ins in a row the password is left alone for a while. */
const MAX_AUTH_FAILURES = 3;
const AUTH_PAUSE_MS = 3_600_000;

export type AnswersDeps = {
  readonly host: ChannelHost;
  readonly account: MailAccount;
  readonly register: MailRegister;
  /** Whether we store the copy in the Sent folder ourselves. */
  keepsCopies(): boolean;
  /** Copies wait to be stored. */
  wake(): void;
  /** No access token will ever come again from this refresh token. */
  tokenRefused(reason: string): void;
};

export class Answers {
  readonly #deps: AnswersDeps;
  /** Permitted, not yet in the log: counted, so that answers sent side by side keep the budget. */
  readonly #underWay = new Set<SentReply>();
  #authFailures = 0;
  #resumeAt = 0;

  constructor(deps: AnswersDeps) {
    this.#deps = deps;
  }

  async send(message: OutboundMessage, context: SendContext): Promise<Receipt> {
    const { host, account, register } = this.#deps;
    if (renderPlain(message.markdown).trim() === '') return { nativeIds: [] };
    const recipient = normalizeAddress(message.chat.chat);
    if (recipient === undefined || recipient !== message.chat.chat) {
      throw refused('recipient is not a plain mail address', 'mail_recipient');
    }
    const now = host.clock.now();
    const record = await outgoingRecord(message, account.from, now, register);
    if (record.isSent || context.sentParts.length > 0) return receiptOf(record);
    this.#expectLogin(now);
    const reply = await this.#permit(message, recipient, now);
    const thread = threadOf(message);
    try {
      const raw = await composeMail({ message, record, thread, recipient, from: account.from });
      await this.#submit(recipient, raw, context);
      await this.#note(message, record, { ...reply, at: host.clock.now() }, raw);
    } finally {
      this.#underWay.delete(reply);
    }
    const receipt = receiptOf(record);
    for (const id of receipt.nativeIds) await context.partSent(id);
    return receipt;
  }

  /** @throws DeliveryError where a budget delays or forbids the answer. */
  async #permit(message: OutboundMessage, recipient: string, now: number): Promise<SentReply> {
    const { host, register } = this.#deps;
    const thread = threadOf(message);
    const known = await register.thread(thread);
    const textHash = createHash('sha256').update(message.markdown).digest('hex').slice(0, 32);
    const request = {
      recipient,
      thread,
      textHash,
      isAuthenticated: known !== undefined && known.level !== 'unverified',
      lastHumanAt: known?.lastHumanAt ?? 0,
    };
    const bounces = await register.bounces();
    const logged = await register.replies();
    const verdict = judgeReply(request, [...logged, ...this.#underWay], bounces, now);
    if (verdict.kind === 'send') {
      const reply = { at: now, recipient, thread, textHash };
      this.#underWay.add(reply);
      return reply;
    }
    host.log.warn('answer held by a mail budget', {
      messageId: message.id,
      reason: verdict.reason,
    });
    if (verdict.kind === 'delay') {
      throw notSent(`budget: ${verdict.reason}`, 'mail_budget', after(verdict.delayMs));
    }
    if (verdict.alert) host.alert(`An answer to ${recipient} was not sent: ${verdict.reason}.`);
    throw refused(`budget: ${verdict.reason}`, 'mail_budget');
  }

  async #submit(recipient: string, raw: Buffer, context: SendContext): Promise<void> {
    const { signal, attempt } = context;
    try {
      await sendBySmtp(this.#deps.account, recipient, raw, signal, attempt);
      this.#authFailures = 0;
    } catch (error) {
      if (!(error instanceof DeliveryError)) throw error;
      if (error.code === SMTP_AUTH_REFUSED) this.#noteRefusal();
      if (error.code === TOKEN_REFUSED) this.#deps.tokenRefused(error.message);
      throw error;
    }
  }

  #noteRefusal(): void {
    const { host } = this.#deps;
    this.#authFailures += 1;
    if (this.#authFailures < MAX_AUTH_FAILURES) return;
    this.#authFailures = 0;
    this.#resumeAt = host.clock.now() + AUTH_PAUSE_MS;
    host.alert('The SMTP server refuses the log-in; answers wait. Check channels.email.');
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
    const { register } = this.#deps;
    const level = (await register.thread(reply.thread))?.level ?? 'unverified';
    const known = { sender: reply.recipient, thread: reply.thread, level, outbound: message.id };
    const { messageId, dateMs } = record;
    const copy = this.#deps.keepsCopies()
      ? { messageId, dateMs, rawBase64: raw.toString('base64'), tries: 0 }
      : undefined;
    await register.noteSent(message.id, record, reply, known, copy);
    this.#deps.wake();
  }
}

export const receiptOf = (record: OutgoingRecord): Receipt => ({
  nativeIds: [nativeId(record.messageId)],
});

function notSent(text: string, code: string, remedy: DeliveryError['remedy']): DeliveryError {
  return new DeliveryError(text, { certainty: 'not_sent', remedy, code });
}

const refused = (text: string, code: string) => notSent(text, code, NEVER);
