// The place in the mailbox: the last UID, and the mails behind it that could not be read yet. The UID only
// grows, so no list of seen mails is needed; flags are the owner's and are never read (cases E04 to E07).

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { jsonRow, number, rowShape, text } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ImapConnection } from './imap-connection.ts';

export type MailCursor = {
  readonly uidValidity: string;
  /** Everything up to here is done. */
  readonly uid: number;
  /** Epoch milliseconds of the first start: older mail is never ours to answer. */
  readonly since: number;
};

export const formatCursor = (cursor: MailCursor) =>
  `${cursor.uidValidity}:${cursor.uid}:${cursor.since}`;

export function parseCursor(text = ''): MailCursor | undefined {
  const match = /^(\d+):(\d+):(\d+)$/.exec(text);
  if (match === null) return undefined;
  const [, uidValidity = '', uid, since] = match;
  return { uidValidity, uid: Number(uid), since: Number(since) };
}

// Mails that could not be read now, because the server fails at them or the name service does not answer,
// wait here while the mails behind them are handled. Each is tried again at growing intervals, over a
// connection of its own: a server may end the connection at such a mail.

export type DeferredMail = {
  readonly uidValidity: string;
  readonly uid: number;
  readonly tries: number;
  /** Epoch milliseconds. */
  readonly dueAt: number;
  /** Of a renumbered mailbox, where it may be an old one: mails before this are not ours to answer. */
  readonly since?: number;
};

const DEFERRED = rowShape<DeferredMail>({
  ...{ uidValidity: text, uid: number, tries: number, dueAt: number },
});

export const MIN_RETRY_MS = 5_000;
const MAX_RETRY_MS = 3_600_000;
/** About six hours. */
export const MAX_TRIES = 16;
/** The owner hears of a failure that lasts longer than half a minute. */
export const TOLD_TRIES = 4;
/** More wait for nothing: each of them costs a connection at every try. */
const MAX_DEFERRED = 200;

export class DeferredMails {
  readonly #state: KeyValueStore;
  readonly #clock: Clock;

  constructor(state: KeyValueStore, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  /** Of this numbering of the mailbox; those of an earlier one are found again by its rescan. */
  async list(uidValidity: string): Promise<readonly DeferredMail[]> {
    const rows = await this.#state.list('later/');
    return rows
      .flatMap(({ value }) => jsonRow(value, DEFERRED) ?? [])
      .filter((mail) => mail.uidValidity === uidValidity)
      .sort((a, b) => a.dueAt - b.dueAt);
  }

  async isFull(uidValidity: string): Promise<boolean> {
    return (await this.list(uidValidity)).length >= MAX_DEFERRED;
  }

  /** One more try has failed. */
  async defer(mail: DeferredMail): Promise<void> {
    const tries = mail.tries + 1;
    const waitMs = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** (tries - 1));
    const row: DeferredMail = { ...mail, tries, dueAt: this.#clock.now() + waitMs };
    await this.#state.set(keyOf(mail), JSON.stringify(row));
  }

  async settle(mail: DeferredMail): Promise<void> {
    await this.#state.delete(keyOf(mail));
  }
}

const keyOf = ({ uidValidity, uid }: DeferredMail) =>
  `later/${uidValidity}/${String(uid).padStart(10, '0')}`;

/** A second connection, opened when it is needed and again after it was given up. */
export class SpareConnection implements AsyncDisposable {
  readonly #connect: () => Promise<ImapConnection>;
  readonly #first: ImapConnection;
  #connection: ImapConnection | undefined;

  constructor(connect: () => Promise<ImapConnection>, first: ImapConnection) {
    this.#connect = connect;
    this.#first = first;
  }

  /**
   * The first one, where the server allows no second.
   * @throws ChannelError where the server cannot be reached at all
   */
  async get(): Promise<ImapConnection> {
    try {
      this.#connection ??= await this.#connect();
      return this.#connection;
    } catch (error) {
      if (this.#first.isOpen) return this.#first;
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.[Symbol.asyncDispose]();
  }
}
