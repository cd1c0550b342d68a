// What the channel remembers about mails, in its own durable rows: who wrote in which thread, how to
// answer each mail, what was sent and what bounced. Written before a mail is handed over, so a crash
// in between only writes the same rows again.

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { MessageId } from '../../core/ids.ts';
import { type Bounce, BUDGET_WINDOW_MS, type SentReply } from '../../core/mail-budget.ts';
import type { MailQuote } from '../../core/mail-quoting.ts';
import { type KnownThread, type ParentMail, parseOwnMessageId } from '../../core/mail-threading.ts';
import type { Verification } from '../../core/message.ts';
import type { KeyValueStore } from '../../store/store.ts';
import type { MailPlace } from './mail-files.ts';

const DAY_MS = 86_400_000;
/** Whole texts and the means to answer a mail. */
const KEEP_MAIL_MS = 30 * DAY_MS;
/** Threads may be taken up again after a long time. */
const KEEP_THREAD_MS = 400 * DAY_MS;
const MAX_LOG_ROWS = 5000;

export type AnsweredMail = ParentMail & { readonly place?: MailPlace };

export type ThreadRecord = {
  readonly sender: string;
  readonly level: Verification;
  /** Epoch milliseconds of the newest mail of the person, by our clock. */
  readonly lastHumanAt: number;
  /** The newest mail, answered when an answer names none. */
  readonly parent: ParentMail;
};

/** A mail we know by its Message-ID. */
export type KnownMail = {
  readonly sender: string;
  readonly thread: string;
  readonly level: Verification;
  /** Our name of the inbound mail; undefined for one of our own. */
  readonly inbound?: MessageId;
  /** The answer one of our own carries. */
  readonly outbound?: MessageId;
  /** Further addresses it was sent to. */
  readonly copies?: readonly string[];
};

/** An answer on its way: everything that makes a second try byte-identical. */
export type OutgoingRecord = {
  readonly messageId: string;
  readonly dateMs: number;
  readonly subject: string;
  readonly inReplyTo?: string;
  readonly references: readonly string[];
  /** Who gets a copy. */
  readonly copies?: readonly string[];
  /** Epoch milliseconds of the latest try. */
  readonly triedAt: number;
  readonly isSent: boolean;
};

/** A copy for the Sent folder that is still to be stored. */
export type PendingCopy = {
  readonly messageId: string;
  readonly dateMs: number;
  readonly rawBase64: string;
  /** Tries so far; one of them may have stored it. */
  readonly tries: number;
};

export type InboundRecord = {
  readonly id: MessageId;
  readonly fingerprint: string;
  readonly thread: string;
  readonly sender: string;
  readonly level: Verification;
  readonly parent: AnsweredMail;
  readonly receivedAt: number;
  /** The text with its quotes, where they were cut; kept 30 days for whoever looks into the state. */
  readonly wholeText: string | undefined;
  /** How an answer quotes it, where it does. */
  readonly quote: MailQuote | undefined;
};

const digest = (text: string, hexChars: number) =>
  createHash('sha256').update(text).digest('hex').slice(0, hexChars);

/** Message ids can be long and hold any character; rows are named by their hash. */
const idKey = (messageId: string) => `id/${digest(messageId, 40)}`;
const timeKey = (at: number) => String(at).padStart(15, '0');

export class MailRegister {
  readonly #state: KeyValueStore;
  readonly #secret: string;

  private constructor(state: KeyValueStore, secret: string) {
    this.#state = state;
    this.#secret = secret;
  }

  static async open(state: KeyValueStore): Promise<MailRegister> {
    const known = await state.get('secret');
    const secret = known ?? randomBytes(32).toString('hex');
    if (known === undefined) await state.set('secret', secret);
    return new MailRegister(state, secret);
  }

  /** Proves that an id of ours was made for this thread and this recipient. */
  tag(thread: string, recipient: string): string {
    return createHmac('sha256', this.#secret)
      .update(`${thread}\n${recipient}`)
      .digest('hex')
      .slice(0, 24);
  }

  isKnownFingerprint(fingerprint: string): Promise<boolean> {
    return this.#state.get(`fp/${fingerprint}`).then((row) => row !== undefined);
  }

  knownMail(messageId: string): Promise<KnownMail | undefined> {
    return this.#read<KnownMail>(idKey(messageId));
  }

  /** The thread a parent id stands for, as far as it concerns this sender. */
  async knownThread(messageId: string, sender: string): Promise<KnownThread | undefined> {
    const own = parseOwnMessageId(messageId);
    if (own !== undefined && this.#isProven(own.tag, own.thread, sender)) {
      const level = (await this.thread(own.thread))?.level ?? 'unverified';
      return { thread: own.thread, sender, level };
    }
    return this.knownMail(messageId);
  }

  thread(thread: string): Promise<ThreadRecord | undefined> {
    return this.#read<ThreadRecord>(`thread/${thread}`);
  }

  parent(inbound: MessageId): Promise<AnsweredMail | undefined> {
    return this.#read<AnsweredMail>(`in/${inbound}`);
  }

  quote(inbound: MessageId): Promise<MailQuote | undefined> {
    return this.#read<MailQuote>(`quote/${inbound}`);
  }

  /** The mail that had the same words from the same sender, and when. */
  sameWords(sender: string, words: string): Promise<{ id: MessageId; at: number } | undefined> {
    return this.#read(`words/${digest(`${sender}\n${words}`, 40)}`);
  }

  async noteRefused(fingerprint: string): Promise<void> {
    await this.#state.set(`fp/${fingerprint}`, '');
  }

  async noteInbound(mail: InboundRecord, words: string): Promise<void> {
    const { id, thread, sender, level, parent, receivedAt, wholeText, quote } = mail;
    const known: KnownMail = { sender, thread, level, inbound: id };
    const record: ThreadRecord = { sender, level, lastHumanAt: receivedAt, parent };
    const rows: [string, unknown][] = [
      [`in/${id}`, parent],
      [`thread/${thread}`, record],
      [`words/${digest(`${sender}\n${words}`, 40)}`, { id, at: receivedAt }],
    ];
    if (parent.messageId !== undefined) rows.push([idKey(parent.messageId), known]);
    if (quote !== undefined) rows.push([`quote/${id}`, quote]);
    await this.#state.setMany([
      { key: `fp/${mail.fingerprint}`, value: '' },
      ...rows.map(([key, value]) => ({ key, value: JSON.stringify(value) })),
      ...(wholeText === undefined ? [] : [{ key: `text/${id}`, value: wholeText }]),
    ]);
  }

  outgoing(id: MessageId): Promise<OutgoingRecord | undefined> {
    return this.#read<OutgoingRecord>(`out/${id}`);
  }

  async noteOutgoing(id: MessageId, record: OutgoingRecord): Promise<void> {
    await this.#state.set(`out/${id}`, JSON.stringify(record));
  }

  async noteSent(
    id: MessageId,
    record: OutgoingRecord,
    replies: readonly SentReply[],
    known: KnownMail,
    copy: PendingCopy | undefined,
  ): Promise<void> {
    const rows: [string, unknown][] = [
      [`out/${id}`, { ...record, isSent: true }],
      ...replies.map((reply, index): [string, unknown] => [
        `reply/${timeKey(reply.at)}/${id}/${index}`,
        reply,
      ]),
      [idKey(record.messageId), known],
    ];
    if (copy !== undefined) rows.push([`copy/${id}`, copy]);
    await this.#state.setMany(rows.map(([key, value]) => ({ key, value: JSON.stringify(value) })));
  }

  replies(): Promise<readonly SentReply[]> {
    return this.#log<SentReply>('reply/');
  }

  bounces(): Promise<readonly Bounce[]> {
    return this.#log<Bounce>('bounce/');
  }

  async noteBounce(bounce: Bounce, messageId: string): Promise<void> {
    const key = `bounce/${timeKey(bounce.at)}/${digest(messageId, 16)}`;
    await this.#state.set(key, JSON.stringify(bounce));
  }

  async pendingCopies(): Promise<readonly { readonly key: string; readonly copy: PendingCopy }[]> {
    const rows = await this.#state.list('copy/');
    return rows.map(({ key, value }) => ({ key, copy: JSON.parse(value) }));
  }

  async noteCopyTried(key: string, copy: PendingCopy): Promise<void> {
    await this.#state.set(key, JSON.stringify({ ...copy, tries: copy.tries + 1 }));
  }

  async noteCopied(key: string): Promise<void> {
    await this.#state.delete(key);
  }

  /** Forgets what no rule looks at any more. */
  async expire(now: number): Promise<void> {
    const short = ['fp/', 'in/', 'text/', 'words/', 'out/', 'copy/', 'quote/'];
    for (const prefix of short) await this.#state.expire(prefix, now - KEEP_MAIL_MS);
    for (const prefix of ['id/', 'thread/']) await this.#state.expire(prefix, now - KEEP_THREAD_MS);
    for (const prefix of ['reply/', 'bounce/']) {
      await this.#state.expire(prefix, now - BUDGET_WINDOW_MS);
    }
  }

  #isProven(tag: string, thread: string, recipient: string): boolean {
    const expected = Buffer.from(this.tag(thread, recipient));
    const given = Buffer.from(tag);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  async #read<T>(key: string): Promise<T | undefined> {
    const row = await this.#state.get(key);
    return row === undefined ? undefined : JSON.parse(row);
  }

  async #log<T>(prefix: string): Promise<readonly T[]> {
    const rows = await this.#state.list(prefix, { limit: MAX_LOG_ROWS, newestFirst: true });
    return rows.map(({ value }) => JSON.parse(value));
  }
}
