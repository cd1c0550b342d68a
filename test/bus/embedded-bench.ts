// Benches for the bus: over the embedded store, on a file of its own, and over any other.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MessageBus } from '../../src/kernel/bus/bus.ts';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import type { BusBench, MakeBusBench } from '../contract/bus.ts';
import { never } from '../contract/bus-bench.ts';
import {
  createMovableClock,
  type MovableClock,
  settleCallbacks,
} from '../support/movable-clock.ts';

export const makeEmbeddedBench: MakeBusBench = async (limits = {}) => {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-bus-'));
  const clock = createMovableClock();
  const path = join(folder, 'state.db');
  const openStore = () => openEmbeddedStore({ path, clock, log: silentLogger });
  return benchOver(clock, openStore, limits, () => rm(folder, { recursive: true }));
};

export function benchOver(
  clock: MovableClock,
  openStore: () => Promise<EmbeddedStore>,
  limits: Parameters<MakeBusBench>[0],
  onEnd: () => Promise<void>,
): BusBench {
  const stores: EmbeddedStore[] = [];
  const lives = new Map<MessageBus, Life>();
  return {
    clock,
    async open() {
      const store = await openStore();
      stores.push(store);
      const life: Life = { isOver: false, store };
      const bus = createMessageBus({
        store: mortal(store, life),
        clock,
        log: silentLogger,
        limits: { maxPendingPerChat: 200, maxPending: 10_000, ...limits },
      });
      lives.set(bus, life);
      return bus;
    },
    async kill(bus) {
      const life = lives.get(bus);
      if (life === undefined) throw new TypeError('not a bus of this bench');
      life.isOver = true;
      // What was issued before the death is committed before it, too.
      await life.store.neededMedia();
    },
    async [Symbol.asyncDispose]() {
      for (const store of stores) await store[Symbol.asyncDispose]();
      await onEnd();
    },
  };
}

type Life = { isOver: boolean; readonly store: EmbeddedStore };

/** The store as a process sees it: after its death no call goes through and no result comes back. */
function mortal(store: EmbeddedStore, life: Life): EmbeddedStore {
  const isSynchronous = (key: string | symbol) =>
    key === 'changedOutside' || key === 'revision' || key === 'scope';
  return new Proxy(store, {
    get(target, key) {
      const method: unknown = Reflect.get(target, key);
      if (typeof method !== 'function' || isSynchronous(key)) return method;
      return async (...args: unknown[]) => {
        if (life.isOver) return never;
        const result: unknown = await method.apply(target, args);
        return life.isOver ? never : result;
      };
    },
  });
}

/** Over PostgreSQL: time moves on when no transaction is under way, and none follows from the last one. */
export const clockOver = (stores: readonly EmbeddedStore[]): MovableClock =>
  createMovableClock(undefined, async () => {
    // One that ends between two rounds of callbacks is followed by the next only in a later round.
    for (let quiet = 0; quiet < 2; ) {
      await settleCallbacks();
      quiet = stores.some((store) => store.waitMs() > 0) ? 0 : quiet + 1;
    }
  });
