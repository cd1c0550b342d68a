// A ChannelHost that keeps everything in memory: what a channel handed over, which messages are
// known already, the cursor, and what it reported. For tests of one channel without the gateway.

import type { ChannelHost, ChannelStatus, ShowOutcome } from '../../src/channels/channel.ts';
import type { ChannelCursor, InboundEntry } from '../../src/kernel/bus/bus.ts';
import type { KeyValueStore } from '../../src/kernel/bus/store/store.ts';
import type { MediaStore } from '../../src/kernel/media/media.ts';
import { BusFullError } from '../../src/kernel/message/errors.ts';
import type { MessageId } from '../../src/kernel/message/ids.ts';
import { createRows, type OpenRows } from '../../src/kernel/rows.ts';
import { type LogFields, type Logger, silentLogger } from '../../src/lib/logger.ts';
import type { Clock } from '../../src/lib/time/clock.ts';
import { createMemoryMedia } from './memory-media.ts';

export type MemoryHost = ChannelHost & {
  /** Entries in the order they came, without those already known. */
  readonly entries: readonly InboundEntry[];
  /** How often a known message came again. */
  readonly duplicates: number;
  readonly statuses: readonly ChannelStatus[];
  readonly alerts: readonly string[];
  /** Reasons by message, as reported to the gateway. */
  readonly bounces: ReadonlyMap<string, string>;
  /** What the owner was told besides. */
  readonly told: readonly string[];
  /** What comes of every press; nothing unless set. */
  outcome: string | undefined;
  readonly logged: readonly { readonly message: string; readonly fields: LogFields }[];
  storedCursor: string | undefined;
  /** While true, `receive` refuses with BusFullError. */
  isFull: boolean;
  /** Awaited before a batch is stored. */
  beforeStore: ((batch: readonly InboundEntry[]) => Promise<void>) | undefined;
  /** Takes nothing more in, as at a graceful stop. */
  close(): void;
  texts(): readonly string[];
  gates(): readonly string[];
  /** Resolves when `look` gives something; looks again after every report and batch. */
  until<T>(look: (host: MemoryHost) => T | undefined | false, timeoutMs?: number): Promise<T>;
};

/** @param state absent: in memory too */
export function createMemoryHost(clock: Clock, state?: KeyValueStore): MemoryHost {
  return new Host(clock, state);
}

class Host implements MemoryHost {
  readonly clock: Clock;
  readonly entries: InboundEntry[] = [];
  readonly statuses: ChannelStatus[] = [];
  readonly alerts: string[] = [];
  readonly bounces = new Map<string, string>();
  readonly told: string[] = [];
  outcome: string | undefined;
  readonly logged: { message: string; fields: LogFields }[] = [];
  readonly closing: AbortSignal;
  readonly state: KeyValueStore;
  readonly media: MediaStore;
  readonly #closing = new AbortController();
  readonly log: Logger;
  duplicates = 0;
  storedCursor: string | undefined;
  isFull = false;
  beforeStore: ((batch: readonly InboundEntry[]) => Promise<void>) | undefined;
  readonly #listeners = new Set<() => void>();

  constructor(clock: Clock, state: KeyValueStore = createMemoryStore()) {
    this.clock = clock;
    this.state = state;
    this.media = createMemoryMedia(clock);
    this.closing = this.#closing.signal;
    const note = (message: string, fields: LogFields = {}) =>
      void this.logged.push({ message, fields });
    const noting = { debug: note, info: note, warn: note, error: note };
    this.log = { ...silentLogger, ...noting, child: () => this.log };
  }

  /** One account alone. */
  async answers(): Promise<boolean> {
    return true;
  }

  async receive(
    batch: readonly InboundEntry[],
    options: { readonly cursor?: ChannelCursor; readonly pressed?: ShowOutcome } = {},
  ): Promise<void> {
    await this.beforeStore?.(batch);
    if (this.isFull) {
      this.#changed();
      throw new BusFullError('the test queue is full');
    }
    const known = new Set(this.entries.map(({ message }) => message.id));
    for (const entry of batch) {
      if (known.has(entry.message.id)) this.duplicates += 1;
      else {
        this.entries.push(entry);
        const { id, press } = entry.message;
        if (press !== undefined && this.outcome) options.pressed?.(id, this.outcome);
      }
      known.add(entry.message.id);
    }
    if (options.cursor !== undefined) this.storedCursor = options.cursor.value;
    this.#changed();
  }

  /** Here nobody was let in. */
  async isUnknownSender(): Promise<boolean> {
    return true;
  }

  /** Nobody besides those whom the channel's own settings name. */
  async isTrusted(): Promise<boolean> {
    return false;
  }

  async bounced(id: MessageId, reason: string): Promise<'marked' | 'known'> {
    if (this.bounces.has(id)) return 'known';
    this.bounces.set(id, reason);
    return 'marked';
  }

  async cursor(): Promise<string | undefined> {
    return this.storedCursor;
  }

  report(status: ChannelStatus): void {
    this.statuses.push(status);
    this.#changed();
  }

  close(): void {
    this.#closing.abort();
  }

  alert(text: string): void {
    this.alerts.push(text);
    this.#changed();
  }

  tell(text: string): void {
    this.told.push(text);
    this.#changed();
  }

  texts(): readonly string[] {
    return this.entries.filter(({ kind }) => kind === 'queue').map(({ message }) => message.text);
  }

  gates(): readonly string[] {
    return this.entries.flatMap((entry) => (entry.kind === 'record' ? [entry.gate] : []));
  }

  until<T>(look: (host: MemoryHost) => T | undefined | false, timeoutMs = 45_000): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#listeners.delete(check);
        reject(new Error(`the host saw nothing of the kind within ${timeoutMs} ms`));
      }, timeoutMs);
      const check = () => {
        const value = look(this);
        if (value === undefined || value === false) return;
        clearTimeout(timer);
        this.#listeners.delete(check);
        resolve(value);
      };
      this.#listeners.add(check);
      check();
    });
  }

  #changed() {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Collections over one scope that is kept in memory. */
export const memoryRows = (state: KeyValueStore = createMemoryStore()): OpenRows =>
  createRows({ scope: () => state, revision: () => 1 });

export function createMemoryStore(): KeyValueStore {
  const rows = new Map<string, string>();
  const put = (key: string, value: string | undefined) => {
    if (value === undefined) rows.delete(key);
    else rows.set(key, value);
  };
  return {
    get: async (key) => rows.get(key),
    getCommitted: async (key) => rows.get(key),
    async set(key, value) {
      rows.set(key, value);
    },
    async setMany(changes) {
      for (const { key, value } of changes) put(key, value);
    },
    async swap({ key, from, to }, others) {
      if (rows.get(key) !== from) return false;
      put(key, to);
      for (const other of others) put(other.key, other.value);
      return true;
    },
    async update(step) {
      const read = (keys: readonly string[]) =>
        new Map([...rows].filter(([key]) => keys.includes(key)));
      const { rows: changes, result } = step(read);
      for (const { key, value } of changes) put(key, value);
      return result;
    },
    async delete(key) {
      rows.delete(key);
    },
    async list(prefix, { limit = Number.POSITIVE_INFINITY, after, newestFirst = false } = {}) {
      const keys = [...rows.keys()].filter((key) => key.startsWith(prefix)).sort();
      if (newestFirst) keys.reverse();
      const isBehind = (key: string) =>
        after === undefined || (newestFirst ? key < after : key > after);
      return keys
        .filter(isBehind)
        .slice(0, limit)
        .map((key) => ({ key, value: rows.get(key) ?? '' }));
    },
    expire: async () => 0,
  };
}
