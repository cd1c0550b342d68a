// What the channel stores about mails in durable rows: who wrote in which thread, how to answer
// each mail, what was sent and what bounced. The rows are written before a mail is handed over, so
// that a crash in between writes the same rows again. Message-IDs carry an authentication tag, so
// that nobody joins a thread by guessing.

import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import type { Verification } from '../../kernel/message/message.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { jsonRow, number, object, rowShape, text } from '../../lib/json/json.ts';
import type { MailPlace } from './mail-files.ts';
import {
  type Bounce,
  BUDGET_WINDOW_MS,
  NO_PACE,
  type SentReply,
  type ThreadPace,
} from './rules/budget.ts';
import {
  type KnownThread,
  type MailQuote,
  type ParentMail,
  parseOwnMessageId,
} from './rules/threading.ts';

const DAY_MS = 86_400_000;
/** Whole texts and what is needed to answer a mail. */
const KEEP_MAIL_MS = 30 * DAY_MS;
/** Threads may be continued after a long time. */
const KEEP_THREAD_MS = 400 * DAY_MS;
const MAX_LOG_ROWS = 5000;
const TAG_CHARS = 24;

export const digest = (text: string, hexChars: number) => hash('sha256', text).slice(0, hexChars);

/** Message ids can be long and contain any character, so rows are named by their hash. */
const idKey = (messageId: string) => `id/${digest(messageId, 40)}`;
const wordsKey = (sender: string, words: string) => `words/${digest(`${sender}\n${words}`, 40)}`;
const timeKey = (at: number) => String(at).padStart(15, '0');

/** Rows of earlier versions lack `count`. */
type SameWords = { readonly id: MessageId; readonly at: number; readonly count?: number };

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

  /** For a Message-ID: proves that it was made for this thread and this recipient. */
  tag(thread: string, recipient: string): string {
    return createHmac('sha256', this.#secret)
      .update(`${thread}\n${recipient}`)
      .digest('hex')
      .slice(0, TAG_CHARS);
  }

  #isProven(tag: string, thread: string, recipient: string): boolean {
    const expected = Buffer.from(this.tag(thread, recipient));
    const given = Buffer.from(tag);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  isKnownFingerprint(fingerprint: string): Promise<boolean> {
    return this.#state.get(`fp/${fingerprint}`).then((row) => row !== undefined);
  }

  knownMail(messageId: string): Promise<KnownMail | undefined> {
    return this.#read<KnownMail>(idKey(messageId));
  }

  /** The thread of a parent id, as far as it concerns this sender. */
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

  /** The last mail with the same text from the same sender, its time, and how many there were. */
  sameWords(sender: string, words: string): Promise<SameWords | undefined> {
    return this.#read(wordsKey(sender, words));
  }

  /** Whether the owner gets a notice: once a day about the same subject. */
  async isNews(subject: string, now: number): Promise<boolean> {
    const key = `told/${digest(subject, 40)}`;
    if (now - Number((await this.#state.get(key)) ?? 0) < DAY_MS) return false;
    await this.#state.set(key, String(now));
    return true;
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
      [wordsKey(sender, words), { id, at: receivedAt, count: await this.#repeats(mail, words) }],
    ];
    if (parent.messageId !== undefined) rows.push([idKey(parent.messageId), known]);
    if (quote !== undefined) rows.push([`quote/${id}`, quote]);
    await this.#state.setMany([
      { key: `fp/${mail.fingerprint}`, value: '' },
      ...rows.map(([key, value]) => ({ key, value: JSON.stringify(value) })),
      ...(wholeText === undefined ? [] : [{ key: `text/${id}`, value: wholeText }]),
    ]);
  }

  async #repeats({ id, sender, receivedAt }: InboundRecord, words: string): Promise<number> {
    const before = await this.sameWords(sender, words);
    if (before === undefined || receivedAt - before.at >= DAY_MS) return 1;
    return (before.count ?? 1) + (before.id === id ? 0 : 1);
  }

  outgoing(id: MessageId): Promise<OutgoingRecord | undefined> {
    return this.#read<OutgoingRecord>(`out/${id}`);
  }

  noteOutgoing(id: MessageId, record: OutgoingRecord): Promise<void> {
    return this.#write(`out/${id}`, record);
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

  noteBounce(bounce: Bounce, messageId: string): Promise<void> {
    return this.#write(`bounce/${timeKey(bounce.at)}/${digest(messageId, 16)}`, bounce);
  }

  async pace(thread: string): Promise<ThreadPace> {
    return (await this.#read<ThreadPace>(`pace/${thread}`)) ?? NO_PACE;
  }

  notePace(thread: string, pace: ThreadPace): Promise<void> {
    return this.#write(`pace/${thread}`, pace);
  }

  /** What a limit holds back, oldest first. */
  async held(): Promise<readonly HeldMail[]> {
    const rows = await this.#state.list('held/');
    const held = rows.flatMap(({ value }) => parsed<HeldMail>(value) ?? []);
    return held.toSorted((a, b) => a.since - b.since);
  }

  noteHeld(mail: HeldMail): Promise<void> {
    return this.#write(`held/${mail.id}`, mail);
  }

  async noteReleased(id: MessageId): Promise<void> {
    await this.#state.delete(`held/${id}`);
  }

  async pendingCopies(): Promise<readonly { readonly key: string; readonly copy: PendingCopy }[]> {
    const rows = await this.#state.list('copy/');
    return rows.flatMap(({ key, value }) => {
      const copy = parsed<PendingCopy>(value);
      return copy === undefined ? [] : [{ key, copy }];
    });
  }

  noteCopyTried(key: string, copy: PendingCopy): Promise<void> {
    return this.#write(key, { ...copy, tries: copy.tries + 1 });
  }

  async noteCopied(key: string): Promise<void> {
    await this.#state.delete(key);
  }

  /** Deletes what no rule uses any more. */
  async expire(now: number): Promise<void> {
    const short = ['fp/', 'in/', 'text/', 'words/', 'out/', 'copy/', 'quote/', 'told/'];
    for (const prefix of [...short, 'later/', 'held/']) {
      await this.#state.expire(prefix, now - KEEP_MAIL_MS);
    }
    for (const prefix of ['id/', 'thread/', 'pace/'])
      await this.#state.expire(prefix, now - KEEP_THREAD_MS);
    for (const prefix of ['reply/', 'bounce/']) {
      await this.#state.expire(prefix, now - BUDGET_WINDOW_MS);
    }
  }

  async #read<T>(key: string): Promise<T | undefined> {
    return parsed(await this.#state.get(key));
  }

  async #write(key: string, row: object): Promise<void> {
    await this.#state.set(key, JSON.stringify(row));
  }

  async #log<T>(prefix: string): Promise<readonly T[]> {
    const rows = await this.#state.list(prefix, { limit: MAX_LOG_ROWS, newestFirst: true });
    return rows.flatMap(({ value }) => parsed<T>(value) ?? []);
  }
}

/** A damaged row counts as missing: it must not stop mail. */
const parsed = <T>(json: string | undefined) => jsonRow<T>(json, object);

// The rows of the mail register.

type AnsweredMail = ParentMail & { readonly place?: MailPlace };

type ThreadRecord = {
  readonly sender: string;
  readonly level: Verification;
  /** Epoch milliseconds of the person's newest mail, local clock. */
  readonly lastHumanAt: number;
  /** The newest mail, answered when an answer names none. */
  readonly parent: ParentMail;
};

/** A mail known by its Message-ID. */
export type KnownMail = {
  readonly sender: string;
  readonly thread: string;
  readonly level: Verification;
  /** The id of the inbound mail; undefined for an outbound one. */
  readonly inbound?: MessageId;
  /** The answer that an outbound mail carries. */
  readonly outbound?: MessageId;
  /** Further addresses it was sent to. */
  readonly copies?: readonly string[];
};

/** An answer being sent: everything that makes a retry byte-identical. */
export type OutgoingRecord = {
  readonly messageId: string;
  readonly dateMs: number;
  readonly subject: string;
  readonly inReplyTo?: string | undefined;
  readonly references: readonly string[];
  /** Recipients of copies. */
  readonly copies?: readonly string[];
  /** Epoch milliseconds of the latest try. */
  readonly triedAt: number;
  readonly isSent: boolean;
};

/** A mail that a limit holds back: one to be answered, or an outbound one. */
export type HeldMail = {
  readonly id: MessageId;
  readonly recipient: string;
  readonly reason: string;
  /** Epoch milliseconds; determines the order of release. */
  readonly since: number;
};

/** A copy for the Sent folder that is not stored yet. */
type PendingCopy = {
  readonly messageId: string;
  readonly dateMs: number;
  readonly rawBase64: string;
  /** Tries so far; one of them may have stored it. */
  readonly tries: number;
};

type InboundRecord = {
  readonly id: MessageId;
  readonly fingerprint: string;
  readonly thread: string;
  readonly sender: string;
  readonly level: Verification;
  readonly parent: AnsweredMail;
  readonly receivedAt: number;
  /** The text with its quotes if they were cut; kept 30 days for inspection of the state. */
  readonly wholeText: string | undefined;
  /** How an answer quotes it, if it does. */
  readonly quote: MailQuote | undefined;
};

const KNOWN = rowShape<KnownMail>({ sender: text, thread: text, level: text });
const SUBJECT = rowShape<SubjectRow>({ subject: text });
const THREAD = rowShape<ThreadRecord>({
  ...{ sender: text, level: text, lastHumanAt: number },
  parent: z.looseObject({ subject: text }),
});

/**
 * Erases the whole texts, quotes and subjects of a person's mails that contain certain words.
 * `sender`: their address. Returns the number of erased texts.
 */
export async function forgetMails(
  state: KeyValueStore,
  sender: string,
  holds: Holds,
): Promise<number> {
  const known = (await state.list('id/')).flatMap(({ value }) => jsonRow(value, KNOWN) ?? []);
  const theirs = known.filter((mail) => mail.sender === sender);
  const inbound = theirs.flatMap((mail) => mail.inbound ?? []);
  let texts = 0;
  for (const key of inbound.flatMap((id) => [`text/${id}`, `quote/${id}`])) {
    const value = await state.get(key);
    if (value === undefined || !holds(value)) continue;
    await state.delete(key);
    texts += 1;
  }
  const changed: (readonly [key: string, row: object])[] = [];
  const outbound = theirs.flatMap((mail) => (mail.outbound === undefined ? [] : [mail.outbound]));
  for (const key of [...inbound.map((id) => `in/${id}`), ...outbound.map((id) => `out/${id}`)]) {
    const row = jsonRow(await state.get(key), SUBJECT);
    if (row !== undefined && holdsSubject(row, holds)) changed.push([key, { ...row, subject: '' }]);
  }
  for (const { key, value } of await state.list('thread/')) {
    const row = jsonRow(value, THREAD);
    if (row?.sender !== sender || !holdsSubject(row.parent, holds)) continue;
    changed.push([key, { ...row, parent: { ...row.parent, subject: '' } }]);
  }
  await state.setMany(changed.map(([key, row]) => ({ key, value: JSON.stringify(row) })));
  return texts + changed.length;
}

/** An answer being sent keeps its subject: every try of it is the same. */
type SubjectRow = { readonly subject: string; readonly isSent?: boolean };

const holdsSubject = ({ subject, isSent }: SubjectRow, holds: Holds) =>
  holds(subject) && isSent !== false;
