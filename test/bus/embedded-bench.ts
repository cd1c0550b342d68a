// A bench for the bus over the embedded store, on a file of its own.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMessageBus } from '../../src/bus/message-bus.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { openEmbeddedStore } from '../../src/store/embedded.ts';
import type { MakeBusBench } from '../contract/bus.ts';
import { createMovableClock } from '../support/movable-clock.ts';

export const makeEmbeddedBench: MakeBusBench = async (limits = {}) => {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-bus-'));
  const clock = createMovableClock();
  const stores: AsyncDisposable[] = [];
  return {
    clock,
    async open() {
      const path = join(folder, 'state.db');
      const store = await openEmbeddedStore({ path, clock, log: silentLogger });
      stores.push(store);
      return createMessageBus({
        store,
        clock,
        log: silentLogger,
        limits: { maxPendingPerChat: 200, maxPending: 10_000, ...limits },
      });
    },
    async [Symbol.asyncDispose]() {
      for (const store of stores) await store[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    },
  };
};
