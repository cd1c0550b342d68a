// The way in: drains the ledger in order and hands its messages to the bus; a row is removed only when the
// bus has it. A chat whose queue is full keeps its messages, in order, and does not hold up the others.

import type { WAMessageKey } from '@whiskeysockets/baileys';
import { BusFullError } from '../../kernel/message/errors.ts';
import type { ChatId } from '../../kernel/message/ids.ts';
import { backoffMs } from '../../lib/time/clock.ts';
import type { ChannelHost } from '../channel.ts';
import { createUnread, type InboxRow, inOrder, type Unread } from './inbound.ts';
import type { PassingTrouble } from './link-status.ts';
import {
  createRowReader,
  type Parcel,
  type ReadRow,
  type RowReaderDeps,
  type Unresolved,
  withoutOpenAlbums,
} from './row-reader.ts';
import type { Undecryptable } from './undecryptable.ts';

export interface Inbox {
  /** Hands over what was stored, and what will be, until aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** Whether the owner answers in this chat by hand at the moment. */
  isPaused(chat: ChatId): Promise<boolean>;
  /** Takes out what was handed over in this chat and not marked as read, oldest first. */
  takeUnread(chat: ChatId): Promise<readonly WAMessageKey[]>;
}

export type InboxDeps = Omit<RowReaderDeps, 'unread' | 'clock' | 'log'> & {
  readonly host: ChannelHost;
  readonly ledger: {
    list(limit: number, after?: string): Promise<readonly InboxRow[]>;
    remove(arrivals: readonly string[]): Promise<void>;
    arrival(signal: AbortSignal): Promise<void>;
    /** Undefined while none waits to be decrypted. */
    stalledMs(): number | undefined;
  };
  readonly link: {
    readonly isCatchingUp: boolean;
    caughtUp(signal: AbortSignal): Promise<void>;
  };
  readonly undecryptable: Pick<Undecryptable, 'arrived'>;
  readonly unresolved: Unresolved;
  /** 0 to 1; spreads the waits between tries. */
  readonly random: () => number;
  /** Tells, while the connection is open, why nothing comes through; undefined: it does again. */
  noteTrouble(trouble: PassingTrouble | undefined): void;
};

/**
 * Rows read at once, each with its message and the small picture in it. Of a longer queue only the
 * earlier half is taken, so that order is kept.
 */
const WINDOW = 400;
/**
 * A compressed frame is overtaken by those behind it while it is inflated: by a few milliseconds, most
 * of which passed until the overtaking message was on disk.
 */
const QUIET_MS = 8;
/** Among several messages the process may be too busy to see the overtaken one so soon. */
const BUSY_QUIET_MS = 60;
const MAX_SETTLE_MS = 1500;
const FULL_MIN_MS = 1000;
const FULL_MAX_MS = 30_000;

export function createInbox(deps: InboxDeps): Inbox {
  const { host, people, pause } = deps;
  const unread = createUnread();
  return {
    run: (signal) => new Drain(deps, unread, signal).run(),
    isPaused: async (chat) => (await pause.until(await people.namesOf(chat))) > host.clock.now(),
    takeUnread: async (chat) => unread.take(await people.namesOf(chat)),
  };
}

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
    this.#reader = createRowReader({ ...deps, unread, clock, log });
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

  /** Waits until nothing has arrived for a moment, and all that did is decrypted. */
  async #settle(): Promise<void> {
    const { ledger, host } = this.#deps;
    const startedAt = host.clock.monotonic();
    let quietMs = QUIET_MS;
    while (!this.#signal.aborted && host.clock.monotonic() - startedAt < MAX_SETTLE_MS) {
      if (ledger.stalledMs() !== undefined) quietMs = BUSY_QUIET_MS;
      const round = new AbortController();
      const signal = AbortSignal.any([this.#signal, round.signal]);
      const isQuiet = await Promise.race([
        host.clock.sleep(quietMs, signal).then(
          () => true,
          () => true,
        ),
        ledger.arrival(signal).then(
          () => false,
          () => true,
        ),
      ]);
      round.abort();
      if (isQuiet && ledger.stalledMs() === undefined) return;
      quietMs = BUSY_QUIET_MS;
    }
  }

  /** Until something arrives, but no longer than that. */
  async #arrival(idleMs: number): Promise<void> {
    const { ledger, host } = this.#deps;
    if (idleMs === Number.POSITIVE_INFINITY) return ledger.arrival(this.#signal);
    const round = new AbortController();
    const signal = AbortSignal.any([this.#signal, round.signal]);
    const over = (work: Promise<void>) => work.catch(() => undefined);
    await Promise.race([over(host.clock.sleep(idleMs, signal)), over(ledger.arrival(signal))]);
    round.abort();
  }

  /**
   * The next of what waits, and behind chats that have no room all the rest. Undefined: there may be
   * more; else how long nothing is to be taken unless something arrives, milliseconds.
   */
  async #takeWaiting(): Promise<number | undefined> {
    const { ledger } = this.#deps;
    const full = new Set<string>();
    let held: readonly InboxRow[] = [];
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

  async #take(due: readonly InboxRow[], full: Set<string>): Promise<void> {
    const { host, ledger, undecryptable } = this.#deps;
    undecryptable.arrived(due.map(({ key }) => key.id));
    const parcels = await this.#reader.read(due);
    const remove = (arrivals: readonly string[]) => ledger.remove(arrivals);
    const gone = await handOver(parcels, full, { host, remove });
    for (const one of gone) await this.#noteGone(one);
  }

  async #noteGone({ entry, unread, isUnresolved }: ReadRow): Promise<void> {
    if (entry === undefined) return;
    const { message } = entry;
    if (unread !== undefined) this.#unread.note(message.chat.chat, unread);
    if (isUnresolved) await this.#deps.unresolved.note(message);
  }

  async #waitForRoom(): Promise<void> {
    const { host, random, noteTrouble } = this.#deps;
    this.#fullTries += 1;
    const waitMs = backoffMs(this.#fullTries, { minMs: FULL_MIN_MS, maxMs: FULL_MAX_MS, random });
    const reason = 'the queue is full; received messages wait on disk meanwhile';
    noteTrouble({ reason, retryAt: host.clock.now() + waitMs });
    await host.clock.sleep(waitMs, this.#signal);
  }
}

// Hands messages over to the bus and only then lets go of them. A chat whose queue is full keeps its
// messages, in order, and does not hold up the others.

type HandOverDeps = {
  readonly host: Pick<ChannelHost, 'receive'>;
  remove(arrivals: readonly string[]): Promise<void>;
};

const BATCH = 100;

/**
 * `full`: chats that have no room, of which nothing is tried; those found so are added.
 * @returns the parcels that were let go.
 */
export async function handOver<P extends Parcel>(
  parcels: readonly P[],
  full: Set<string>,
  deps: HandOverDeps,
): Promise<readonly P[]> {
  const gone: P[] = [];
  for (let start = 0; start < parcels.length; start += BATCH) {
    const batch = parcels.slice(start, start + BATCH).filter((one) => !full.has(chatOf(one)));
    const taken = (await isTaken(batch, deps)) ? batch : await takenByChat(batch, full, deps);
    await deps.remove(taken.map(({ arrival }) => arrival));
    gone.push(...taken);
  }
  return gone;
}

const chatOf = ({ entry }: Parcel) => entry?.message.chat.chat ?? '';

async function takenByChat<P extends Parcel>(
  batch: readonly P[],
  full: Set<string>,
  deps: HandOverDeps,
): Promise<readonly P[]> {
  const taken: P[] = [];
  for (const [chat, parcels] of Map.groupBy(batch, chatOf)) {
    if (await isTaken(parcels, deps)) taken.push(...parcels);
    else full.add(chat);
  }
  return taken;
}

async function isTaken(batch: readonly Parcel[], { host }: HandOverDeps): Promise<boolean> {
  const entries = batch.flatMap(({ entry }) => entry ?? []);
  if (entries.length === 0) return true;
  try {
    await host.receive(entries);
    return true;
  } catch (error) {
    if (error instanceof BusFullError) return false;
    throw error;
  }
}
