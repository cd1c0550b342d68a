// The key stores over the vault's rows: one for Baileys' own use, and one for libsignal whose writes
// wait in the unit of work under way. Locking and committing is the unit queue's.

import type {
  SignalDataSet,
  SignalDataTypeMap,
  SignalKeyStore,
  SignalKeyStoreWithTransaction,
} from '@whiskeysockets/baileys';
import type { Logger } from '../../lib/logger.ts';
import type { KeyValueChange, KeyValueStore } from '../../store/store.ts';
import { KEY_PREFIX, type KeyRows, type KeyType, keyRow } from './key-rows.ts';
import type { Unit } from './unit-queue.ts';

export type SignalKeysDeps = {
  readonly state: KeyValueStore;
  readonly rows: KeyRows;
  readonly log: Logger;
};

type Values<T extends KeyType> = { [id: string]: SignalDataTypeMap[T] };

/** For `auth.keys` of a socket: reads what is on disk, writes through `write`. */
export function createDurableKeys(
  deps: SignalKeysDeps,
  write: (data: SignalDataSet) => Promise<void>,
  clear: () => Promise<void>,
): SignalKeyStore {
  return { get: (type, ids) => read(deps, deps.state, type, ids), set: write, clear };
}

/** libsignal's keys, and the units of work its calls run in. */
export interface SignalUnits {
  readonly keys: SignalKeyStoreWithTransaction;
  /**
   * Runs alone. What was written is on disk when this resolves, with the credentials where they
   * changed, in one transaction; of a task that throws nothing is.
   * @throws ChannelError `whatsapp_not_saved`, or `whatsapp_link_replaced` after a reset
   */
  run<T>(task: (unit: Unit) => Promise<T>): Promise<T>;
}

/** For libsignal; `within` names the unit its reads and writes belong to. */
export interface UnitKeys {
  readonly store: SignalKeyStoreWithTransaction;
  within<T>(unit: Unit, work: () => Promise<T>): Promise<T>;
}

/**
 * Units run one at a time, so which one is meant needs no asynchronous context: libsignal's own job
 * queue would lose it.
 */
export function createUnitKeys(deps: SignalKeysDeps): UnitKeys {
  let current: Unit | undefined;
  /** Sessions that the unit under way has read, as they are now. */
  let sessionsRead: Record<string, SessionRecord> = {};
  const store: SignalKeyStoreWithTransaction = {
    async get(type, ids) {
      if (type === 'lid-mapping') {
        return tolerant(deps, () => read(deps, deps.state, type, ids), {});
      }
      const values = await read(deps, current ?? deps.state, type, ids);
      if (type === 'session') Object.assign(sessionsRead, values);
      return values;
    },
    async set({ 'lid-mapping': addresses, session: sessions, ...others }) {
      if (addresses !== undefined) {
        const rows = deps.rows.encode({ 'lid-mapping': addresses });
        await tolerant(deps, () => deps.state.setMany(rows), undefined);
      }
      const held: SignalDataSet = { ...others };
      if (sessions !== undefined) {
        const kept = Object.entries(sessions).map(([id, value]) => [
          id,
          withoutFailedTries(sessionsRead[id], value),
        ]);
        held.session = Object.fromEntries(kept);
        Object.assign(sessionsRead, held.session);
      }
      const rows = deps.rows.encode(held);
      if (rows.length === 0) return;
      if (current === undefined) throw new Error('a Signal key was written outside a unit of work');
      putAll(current, rows);
    },
    isInTransaction: () => current !== undefined,
    transaction: (work) => work(),
  };
  return {
    store,
    async within(unit, work) {
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
 * A session record as it has to be stored. libsignal tries a message on one session of a record after
 * the other, the one used last first, and a failed try leaves a session changed that nobody can read
 * any more. Whatever uses a record without opening a session uses one, the last that was tried: every
 * other session stays as it was.
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

/** libsignal stores an object of text and numbers, whatever its type says. */
function sessionsOf(record: unknown): Readonly<Record<string, unknown>> {
  return Object(Reflect.get(Object(record), '_sessions'));
}

function lastUse(session: unknown): number {
  const used: unknown = Reflect.get(Object(Reflect.get(Object(session), 'indexInfo')), 'used');
  return typeof used === 'number' ? used : 0;
}

/**
 * Which LID belongs to which number is read and written at once, in or outside a unit. It is said
 * again with the next message, so a store that fails must not make Baileys refuse this one.
 */
async function tolerant<T>(deps: SignalKeysDeps, work: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    deps.log.warn('known WhatsApp addresses are out of reach', { error });
    return otherwise;
  }
}

export function putAll(unit: Unit, rows: readonly KeyValueChange[]): void {
  for (const { key, value } of rows) unit.put(key, value);
}

/** Deletes every key. */
export async function clearKeys(state: KeyValueStore, unit: Unit): Promise<void> {
  for (const { key } of await state.list(KEY_PREFIX)) unit.put(key, undefined);
}

async function read<T extends KeyType>(
  { rows }: SignalKeysDeps,
  source: Pick<Unit, 'get'>,
  type: T,
  ids: readonly string[],
): Promise<Values<T>> {
  const values: Values<T> = {};
  for (const id of ids) {
    const stored = await source.get(keyRow(type, id));
    const value = stored === undefined ? undefined : rows.decode(type, id, stored);
    if (value !== undefined) values[id] = value;
  }
  return values;
}
