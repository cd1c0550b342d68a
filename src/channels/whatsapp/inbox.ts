// Drains the ledger in order and hands its messages to the bus; a row is removed only when the
// message is on the bus. A chat whose queue is full keeps its messages, in order, and does not
// delay the others.

import type { WAMessageKey } from '@whiskeysockets/baileys';
import { BusFullError } from '../../kernel/message/errors.ts';
import type { ChatId } from '../../kernel/message/ids.ts';
import { RecentMap } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import { backoffMs, following } from '../../lib/time/clock.ts';
import type { ChannelHost } from '../channel.ts';
import type { Ledger, LedgerRow } from './ledger.ts';
import type { Link } from './link.ts';
import type { PassingTrouble } from './link-status.ts';
import {
  createRowReader,
  type ReadRow,
  type RowReaderDeps,
  type Unresolved,
  withoutOpenAlbums,
} from './row-reader.ts';
import type { Undecryptable } from './undecryptable.ts';

export type Inbox = ReturnType<typeof createInbox>;

type InboxDeps = Omit<RowReaderDeps, 'readByOwner' | 'clock' | 'log'> & {
  readonly host: ChannelHost;
  readonly ledger: Pick<Ledger, 'list' | 'remove' | 'arrival' | 'stalledMs'>;
  readonly link: Pick<Link, 'isCatchingUp' | 'caughtUp'>;
  readonly undecryptable: Pick<Undecryptable, 'arrived'>;
  readonly unresolved: Unresolved;
  /** 0 to 1; spreads the waits between tries. */
  readonly random: () => number;
  /** Why messages are not processed while the connection is open; undefined: they are again. */
  noteTrouble(trouble: PassingTrouble | undefined): void;
};

/**
 * Rows read at once, each with its message and its thumbnail. Of a longer queue only the earlier
 * half is taken, so that the order is kept.
 */
const WINDOW = 400;
/**
 * Later frames overtake a compressed one while it is inflated: by a few milliseconds, most of which
 * passed until the overtaking message was on disk.
 */
const QUIET_MS = 8;
/** Among several messages the process may be too busy to see the overtaken one in that time. */
const BUSY_QUIET_MS = 60;
const MAX_SETTLE_MS = 1500;
const FULL_MIN_MS = 1000;
const FULL_MAX_MS = 30_000;
/** Rows handed over in one transaction. */
const BATCH = 100;
const MAX_UNREAD_PER_CHAT = 100;
const MAX_UNREAD_CHATS = 500;

export function createInbox(deps: InboxDeps) {
  const { host, people, pause } = deps;
  /** In memory only: after a restart the phone shows them as unread, which loses nothing. */
  const unread = new RecentMap<string, readonly WAMessageKey[]>(MAX_UNREAD_CHATS);
  const take = (names: readonly string[]) => {
    const keys = names.flatMap((name) => unread.get(name) ?? []);
    for (const name of names) unread.delete(name);
    return keys;
  };
  const note = (chat: ChatId, key: WAMessageKey) => {
    unread.set(chat, [...(unread.get(chat) ?? []), key].slice(-MAX_UNREAD_PER_CHAT));
  };
  const forget = (chat: ChatId, key: WAMessageKey) => {
    const others = unread.get(chat)?.filter((other) => other !== key);
    if (others !== undefined) unread.set(chat, others);
  };
  return {
    /** Hands over stored and new messages until aborted. */
    run: (signal: AbortSignal) => new Drain(deps, { take, note, forget }, signal).run(),
    /** Whether the owner currently answers in this chat by hand. */
    isPaused: async (chat: ChatId) =>
      (await pause.until(await people.namesOf(chat))) > host.clock.now(),
    /** Takes the messages of this chat that are handed over and not read, oldest first. */
    takeUnread: async (chat: ChatId) => take(await people.namesOf(chat)),
  };
}

type Unread = {
  take(names: readonly string[]): void;
  note(chat: ChatId, key: WAMessageKey): void;
  forget(chat: ChatId, key: WAMessageKey): void;
};

class Drain {
  readonly #deps: InboxDeps;
  readonly #unread: Unread;
  readonly #signal: AbortSignal;
  readonly #reader: ReturnType<typeof createRowReader>;
  #fullTries = 0;

  constructor(deps: InboxDeps, unread: Unread, signal: AbortSignal) {
    const { clock, log } = deps.host;
    this.#deps = deps;
    this.#unread = unread;
    this.#signal = signal;
    this.#reader = createRowReader({ ...deps, readByOwner: unread.take, clock, log });
  }

  async run(): Promise<void> {
    const { link, pause, settings } = this.#deps;
    await pause.expire(settings.maxAgeHours * 3_600_000);
    try {
      while (!this.#signal.aborted) {
        await link.caughtUp(this.#signal);
        await this.#settle();
        if (link.isCatchingUp) continue;
        const idleMs = await this.#takeWaiting();
        if (idleMs !== undefined) await this.#arrival(idleMs);
      }
    } catch (error) {
      if (!this.#signal.aborted) throw error;
    }
  }

  /** Waits until nothing has arrived for a moment and everything that did is decrypted. */
  async #settle(): Promise<void> {
    const { ledger, host } = this.#deps;
    const startedAt = host.clock.monotonic();
    let quietMs = QUIET_MS;
    while (!this.#signal.aborted && host.clock.monotonic() - startedAt < MAX_SETTLE_MS) {
      if (ledger.stalledMs() !== undefined) quietMs = BUSY_QUIET_MS;
      const hasArrived = await this.#arrival(quietMs);
      if (!hasArrived && ledger.stalledMs() === undefined) return;
      quietMs = BUSY_QUIET_MS;
    }
  }

  /** Resolves when something arrives or the time is over: whether something did. */
  async #arrival(maxMs: number): Promise<boolean> {
    const { ledger, host } = this.#deps;
    const wait = following(this.#signal);
    const over = () => wait.abort();
    const timer = maxMs === Number.POSITIVE_INFINITY ? undefined : host.clock.timer(maxMs, over);
    try {
      await ledger.arrival(wait.signal);
      return true;
    } catch {
      return false;
    } finally {
      timer?.[Symbol.dispose]();
      wait.abort();
    }
  }

  /**
   * Hands over the next waiting rows, and of chats after ones without room all the rest. Undefined:
   * there may be more; otherwise how long to pause unless something arrives, milliseconds.
   */
  async #takeWaiting(): Promise<number | undefined> {
    const { ledger } = this.#deps;
    const full = new Set<string>();
    let held: readonly LedgerRow[] = [];
    let after = '';
    do {
      const fresh = await ledger.list(WINDOW - held.length, after);
      after = fresh.at(-1)?.arrival ?? after;
      const ordered = inOrder([...held, ...fresh]);
      const due = ordered.length < WINDOW ? ordered : ordered.slice(0, WINDOW / 2);
      held = ordered.slice(due.length);
      if (due.length === 0) return Number.POSITIVE_INFINITY;
      const ready = withoutOpenAlbums(due, this.#deps.host.clock.now());
      if (ready.rows.length === 0) return ready.waitMs;
      await this.#take(ready.rows, full);
    } while (full.size > 0 && held.length > 0 && !this.#signal.aborted);
    if (full.size > 0) await this.#waitForRoom();
    else this.#noteRoom();
    return undefined;
  }

  #noteRoom(): void {
    if (this.#fullTries > 0) this.#deps.noteTrouble(undefined);
    this.#fullTries = 0;
  }

  async #waitForRoom(): Promise<void> {
    const { host, random, noteTrouble } = this.#deps;
    this.#fullTries += 1;
    const waitMs = backoffMs(this.#fullTries, { minMs: FULL_MIN_MS, maxMs: FULL_MAX_MS, random });
    const reason = t`the queue is full; received messages wait on disk`;
    noteTrouble({ reason, retryAt: host.clock.now() + waitMs });
    await host.clock.sleep(waitMs, this.#signal);
  }

  /** Removes rows after handing them over. `full`: chats without room, skipped; more are added. */
  async #take(due: readonly LedgerRow[], full: Set<string>): Promise<void> {
    const { ledger, undecryptable, unresolved } = this.#deps;
    undecryptable.arrived(due.map(({ key }) => key.id));
    const read = await this.#reader.read(due);
    for (let start = 0; start < read.length; start += BATCH) {
      const batch = read.slice(start, start + BATCH).filter((one) => !full.has(chatOf(one)));
      const taken = (await this.#isTaken(batch)) ? batch : await this.#takenByChat(batch, full);
      await ledger.remove(taken.map(({ arrival }) => arrival));
      for (const { entry, isUnresolved } of taken) {
        if (entry !== undefined && isUnresolved) await unresolved.note(entry.message);
      }
    }
  }

  async #takenByChat(batch: readonly ReadRow[], full: Set<string>): Promise<readonly ReadRow[]> {
    const taken: ReadRow[] = [];
    for (const [chat, rows] of Map.groupBy(batch, chatOf)) {
      if (await this.#isTaken(rows)) taken.push(...rows);
      else full.add(chat);
    }
    return taken;
  }

  /** Notes unread messages first: a turn marks them as read before the hand-over resolves. */
  async #isTaken(batch: readonly ReadRow[]): Promise<boolean> {
    const entries = batch.flatMap(({ entry }) => entry ?? []);
    if (entries.length === 0) return true;
    eachUnread(batch, this.#unread.note);
    try {
      await this.#deps.host.receive(entries);
      return true;
    } catch (error) {
      eachUnread(batch, this.#unread.forget);
      if (error instanceof BusFullError) return false;
      throw error;
    }
  }
}

function eachUnread(rows: readonly ReadRow[], call: Unread['note']): void {
  for (const { entry, unread } of rows) {
    if (entry !== undefined && unread !== undefined) call(entry.message.chat.chat, unread);
  }
}

const chatOf = ({ entry }: ReadRow) => entry?.message.chat.chat ?? '';

/** Server time, then arrival: the order of messages that waited while the account was offline. */
const inOrder = (rows: readonly LedgerRow[]) =>
  rows.toSorted((a, b) => a.sentAt - b.sentAt || (a.arrival < b.arrival ? -1 : 1));
