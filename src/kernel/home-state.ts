// The store of a home opened for one command: beside a running gateway or without one. Everything
// done here is one transaction that the gateway notices by itself.

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import type { Pairing } from '../features/people/pairing.ts';
import type { People } from '../features/people/people.ts';
import { silentLogger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { InboundEntry } from './bus/bus.ts';
import { damagedStore } from './bus/store/database.ts';
import { type EmbeddedStoreOptions, openEmbeddedStore } from './bus/store/embedded.ts';
import type { EmbeddedStore } from './bus/store/store.ts';
import type { Home } from './config/files/home.ts';
import type { InboundMessage } from './message/message.ts';
import { createRows, type OpenRows } from './rows.ts';

/** Where pairings live in the store. */
export const PAIRING_SCOPE = 'people';

export interface OpenedState extends AsyncDisposable {
  readonly store: EmbeddedStore;
  readonly rows: OpenRows;
  readonly pairing: Pairing;
  readonly people: People;
}

/** What a stranger's held messages come to is bounded where they are held. */
const NO_LIMITS = {
  maxPending: Number.POSITIVE_INFINITY,
  maxPendingPerChat: Number.POSITIVE_INFINITY,
};

const NO_CONFIGURATION = { allowFrom: [], owners: [], strangers: 'closed' } as const;

const queued = (message: InboundMessage): InboundEntry => ({ kind: 'queue', message });

export function hasState(home: Home): boolean {
  return existsSync(home.state);
}

/** Opens the store, made where there is none, for as long as the work lasts. @throws StoreError */
export async function withOpenState<Result>(
  home: Home,
  clock: Clock,
  work: (state: OpenedState) => Promise<Result>,
): Promise<Result> {
  const state = await openState(home, clock);
  try {
    return await work(state);
  } finally {
    await state[Symbol.asyncDispose]();
  }
}

/**
 * The store of a home, made where there is none. A file without content beside conversations was
 * emptied: taking it for a new one would lose who is let in and what waits. @throws StoreError
 */
export async function openStore(home: Home, options: Omit<EmbeddedStoreOptions, 'path'>) {
  const { size } = (await stat(home.state).catch(() => undefined)) ?? {};
  const sessions = size === 0 ? await readdir(home.sessions).catch(() => []) : [];
  if (sessions.length > 0) throw damagedStore(home.state, 'is empty');
  return openEmbeddedStore({ ...options, path: home.state });
}

/** Makes the store where there is none. @throws StoreError */
export async function openState(
  home: Home,
  clock: Clock,
  { checkUpToBytes = 0 }: Pick<EmbeddedStoreOptions, 'checkUpToBytes'> = {},
): Promise<OpenedState> {
  const { createPeople } = await import('../features/people/people.ts');
  const { OWN_DOORS } = await import('../channels/door.ts');
  const store = await openStore(home, { clock, log: silentLogger, checkUpToBytes });
  const rows = createRows(store);
  const people = createPeople({
    rows,
    state: store.scope(PAIRING_SCOPE),
    ownDoors: OWN_DOORS,
    // What the configuration adds is the running gateway's to say.
    policy: () => NO_CONFIGURATION,
    clock,
    randomBytes,
    async release(messages) {
      await store.accept(messages.map(queued), { cursor: undefined, limits: NO_LIMITS });
    },
  });
  return {
    store,
    rows,
    pairing: people.pairing,
    people,
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
