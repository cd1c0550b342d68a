// Signal keys as rows of text, one row each, and the key store of libsignal, whose writes wait in
// the current unit of work. The unit queue locks and commits.

import { AsyncLocalStorage } from 'node:async_hooks';
import {
  BufferJSON,
  proto,
  type SignalDataSet,
  type SignalDataTypeMap,
  type SignalKeyStoreWithTransaction,
} from '@whiskeysockets/baileys';
import type { KeyValueChange, KeyValueStore } from '../../kernel/bus/store/store.ts';
import { ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { RecentMap } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import { seal, type Unit, unseal } from './rows.ts';

export const KEY_PREFIX = 'key/';
export const PRE_KEY_PREFIX = `${KEY_PREFIX}pre-key/`;
/** Wide enough for the three bytes of a pre-key id: rows sort by number. */
const PRE_KEY_ID_DIGITS = 8;

/** Of people who write now. */
const MAX_SESSIONS = 200;

/** Of each session; WhatsApp's own apps keep five chains in all. */
const MAX_FINISHED_CHAINS = 5;

/** How the library's JSON marks bytes. */
const BYTES = '"type":"Buffer"';

type KeyType = keyof SignalDataTypeMap;

export function keyRow(type: KeyType, id: string): string {
  if (type === 'pre-key') return PRE_KEY_PREFIX + id.padStart(PRE_KEY_ID_DIGITS, '0');
  return `${KEY_PREFIX}${type}/${id}`;
}

/** The id of a pre-key's row. */
export function preKeyIdOf(row: string): number {
  return Number(row.slice(PRE_KEY_PREFIX.length));
}

/** A row that holds the key; null deletes. */
export function rowOfKey(type: KeyType, id: string, value: unknown): KeyValueChange {
  const key = keyRow(type, id);
  if (value == null) return { key, value: undefined };
  // Sessions are pure text; looking for bytes in them costs as much as the rest of it.
  const replacer = type === 'session' ? undefined : BufferJSON.replacer;
  return { key, value: seal(key, JSON.stringify(value, replacer)) };
}

/**
 * Reads and writes rows of keys. An unreadable row is recorded and logged once; most kinds are then
 * treated as missing, because the protocol replaces them by itself.
 */
export class KeyRows {
  readonly #log: Logger;
  readonly #damaged = new Set<string>();
  /** Sessions as the library gave or got them, with their rows: it changes copies. */
  readonly #sessions = new RecentMap<string, { readonly row: string; readonly value: unknown }>(
    MAX_SESSIONS,
  );

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Rows that were found unreadable and not rewritten since. */
  get damaged(): number {
    return this.#damaged.size;
  }

  forget(): void {
    this.#damaged.clear();
    this.#sessions.clear();
  }

  /** What Baileys stores, as rows. */
  encode(data: SignalDataSet): readonly KeyValueChange[] {
    return Object.entries(data).flatMap(([type, values]) =>
      Object.entries(values ?? {}).map(([id, value]) => this.#encode(type as KeyType, id, value)),
    );
  }

  #encode(type: KeyType, id: string, value: unknown): KeyValueChange {
    const row = rowOfKey(type, id, value);
    this.#damaged.delete(row.key);
    if (type === 'session' && row.value !== undefined) {
      this.#sessions.set(row.key, { row: row.value, value });
    }
    return row;
  }

  async read<T extends KeyType>(
    source: Pick<Unit, 'get'>,
    type: T,
    ids: readonly string[],
  ): Promise<{ [id: string]: SignalDataTypeMap[T] }> {
    const values: { [id: string]: SignalDataTypeMap[T] } = {};
    for (const id of ids) {
      const stored = await source.get(keyRow(type, id));
      const value = stored === undefined ? undefined : this.#decode(type, id, stored);
      if (value !== undefined) values[id] = value;
    }
    return values;
  }

  /**
   * The key in a stored row; undefined if it is damaged: a missing session, sender key, pre-key or
   * device list is requested again.
   * @throws ChannelError for damaged app state keys, which only the phone could send again.
   */
  #decode<T extends KeyType>(
    type: T,
    id: string,
    stored: string,
  ): SignalDataTypeMap[T] | undefined {
    const key = keyRow(type, id);
    const known = this.#sessions.get(key);
    if (known?.row === stored) return known.value as SignalDataTypeMap[T];
    const value = parse(unseal(key, stored));
    if (value === undefined) {
      this.#noteDamage(type, id);
      return undefined;
    }
    if (type === 'session') this.#sessions.set(key, { row: stored, value });
    if (type !== 'app-state-sync-key') return value as SignalDataTypeMap[T];
    const shared: SignalDataTypeMap[KeyType] = proto.Message.AppStateSyncKeyData.fromObject(value);
    return shared as SignalDataTypeMap[T];
  }

  #noteDamage(type: KeyType, id: string): void {
    const key = keyRow(type, id);
    if (!this.#damaged.has(key)) {
      this.#damaged.add(key);
      // Some ids contain a phone number.
      const shortId = id.replace(/\d+(?=\d{4})/g, '…');
      this.#log.error('stored WhatsApp key not readable', { type, id: shortId });
    }
    if (type !== 'app-state-sync-key') return;
    const problem = t`A stored key of the WhatsApp account cannot be read.`;
    throw new ChannelError('whatsapp_key_damaged', problem, { remedy: NEVER });
  }
}

function parse(text: string | undefined): Record<string, unknown> | undefined {
  if (text === undefined) return undefined;
  try {
    // Looking for bytes in a session costs more than decrypting.
    return JSON.parse(text, text.includes(BYTES) ? BufferJSON.reviver : undefined);
  } catch {
    return undefined;
  }
}

/**
 * The key store of libsignal. Units run one at a time, so the current one needs no asynchronous
 * context: libsignal's own job queue would lose it.
 */
export function createUnitKeys(rows: KeyRows, state: KeyValueStore, log: Logger) {
  let current: Unit | undefined;
  /** Sessions that the current unit has read, in their current state. */
  let sessionsRead: Record<string, SessionRecord> = {};

  /**
   * Pairs of LID and number are read and written at once, in or outside a unit. They come again
   * with the next message, so a failing store must not make Baileys refuse this one.
   */
  async function tolerant<T>(work: Promise<T>, otherwise: T): Promise<T> {
    try {
      return await work;
    } catch (error) {
      log.warn('known WhatsApp addresses not readable', { error });
      return otherwise;
    }
  }

  const store: SignalKeyStoreWithTransaction = {
    async get(type, ids) {
      if (type === 'lid-mapping') return tolerant(rows.read(state, type, ids), {});
      const values = await rows.read(current ?? state, type, ids);
      if (type === 'session') Object.assign(sessionsRead, values);
      return values;
    },
    async set({ 'lid-mapping': addresses, session: sessions, ...others }) {
      if (addresses !== undefined) {
        const encoded = rows.encode({ 'lid-mapping': addresses });
        await tolerant(state.setMany(encoded), undefined);
      }
      const held: SignalDataSet = { ...others };
      if (sessions !== undefined) {
        const kept = Object.entries(sessions).map(([id, value]) => [
          id,
          withoutOldChains(withoutFailedTries(sessionsRead[id], value)),
        ]);
        held.session = Object.fromEntries(kept);
        Object.assign(sessionsRead, held.session);
      }
      const encoded = rows.encode(held);
      if (encoded.length === 0) return;
      if (current === undefined) throw new Error('a Signal key was written outside a unit of work');
      current.putAll(encoded);
    },
    isInTransaction: () => current !== undefined,
    transaction: (work) => work(),
  };
  return {
    store,
    /** Sets the unit that reads and writes of libsignal belong to. */
    async within<T>(unit: Unit, work: () => Promise<T>): Promise<T> {
      current = unit;
      sessionsRead = {};
      try {
        return await work();
      } finally {
        current = undefined;
      }
    },
  };
}

type SessionRecord = SignalDataTypeMap['session'] | null;

/**
 * A session record as it must be stored. libsignal tries a message on one session of a record after
 * the other, the last used first, and a failed try leaves a session changed and unusable. An
 * operation that opens no session uses one, the last that was tried: all other sessions are
 * restored.
 */
export function withoutFailedTries(
  before: SessionRecord | undefined,
  after: SessionRecord,
): SessionRecord {
  const old = sessionsOf(before);
  const now = sessionsOf(after);
  const ids = Object.keys(now);
  if (after === null || ids.length < 2 || ids.some((id) => old[id] === undefined)) return after;
  const changed = Object.entries(old)
    .filter(([id, session]) => id in now && JSON.stringify(session) !== JSON.stringify(now[id]))
    .toSorted(([, a], [, b]) => lastUse(b) - lastUse(a));
  const kept = Object.fromEntries(changed.slice(0, -1));
  return Object.assign({}, after, { _sessions: { ...now, ...kept } });
}

/**
 * A session record without its old chains. Each time the two sides take turns a chain of messages
 * ends, and libsignal keeps it for ever. One of which all messages were read is of use only to
 * recognise a message that comes again.
 */
function withoutOldChains(record: SessionRecord): SessionRecord {
  const sessions = Object.entries(sessionsOf(record)).map(([id, session]) => {
    const chains = Object.entries(chainsOf(session));
    const finished = chains.filter(([, chain]) => isFinished(chain));
    if (finished.length <= MAX_FINISHED_CHAINS) return [id, session];
    const old = new Set(finished.slice(0, -MAX_FINISHED_CHAINS).map(([key]) => key));
    const kept = Object.fromEntries(chains.filter(([key]) => !old.has(key)));
    return [id, Object.assign({}, session, { _chains: kept })];
  });
  return record === null
    ? null
    : Object.assign({}, record, { _sessions: Object.fromEntries(sessions) });
}

const chainsOf = (session: unknown): Readonly<Record<string, unknown>> =>
  Object(Reflect.get(Object(session), '_chains'));

/** It has no key for further messages, and none for earlier ones that did not come. */
function isFinished(chain: unknown): boolean {
  const { chainKey, messageKeys } = Object(chain);
  return Object(chainKey).key === undefined && Object.keys(Object(messageKeys)).length === 0;
}

/** libsignal stores an object of text and numbers, whatever its type says. */
function sessionsOf(record: unknown): Readonly<Record<string, unknown>> {
  return Object(Reflect.get(Object(record), '_sessions'));
}

function lastUse(session: unknown): number {
  const used: unknown = Reflect.get(Object(Reflect.get(Object(session), 'indexInfo')), 'used');
  return typeof used === 'number' ? used : 0;
}

/**
 * The keys of a socket, for work that one of the library's transactions begins and does not await:
 * what it wrote after the end of the transaction was lost. So the library never noted when it had
 * given a person a token of trust, and gave a new one with each message, not once a week.
 */
export function withTransactionsThatEnd(
  keys: SignalKeyStoreWithTransaction,
): SignalKeyStoreWithTransaction {
  const current = new AsyncLocalStorage<{ isOver: boolean }>();
  const outside = AsyncLocalStorage.snapshot();
  const inPlace = <T>(call: () => T): T =>
    current.getStore()?.isOver === true ? outside(call) : call();

  function begin<T>(work: () => Promise<T>, key: string): Promise<T> {
    if (current.getStore() !== undefined) return keys.transaction(work, key);
    const own = { isOver: false };
    const whole = () =>
      work().finally(() => {
        own.isOver = true;
      });
    return keys.transaction(() => current.run(own, whole), key);
  }

  return {
    get: (type, ids) => inPlace(() => keys.get(type, ids)),
    set: (data) => inPlace(() => keys.set(data)),
    isInTransaction: () => inPlace(() => keys.isInTransaction()),
    transaction: (work, key) => inPlace(() => begin(work, key)),
  };
}
