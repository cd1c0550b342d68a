// The contract of a channel twice: with its state in memory or a file, as its own tests have it, and
// in PostgreSQL.

import { afterAll, beforeAll, describe } from 'vitest';
import type { EmbeddedStore, KeyValueStore } from '../../src/kernel/bus/store/store.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { openAt } from '../support/open-store.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { type ChannelRig, channelContract } from './channel.ts';

/** @param startRig absent state: the rig's own */
export function channelContractOnBoth(
  name: string,
  startRig: (state?: KeyValueStore) => Promise<ChannelRig>,
): void {
  channelContract(name, () => startRig());
  describe.skipIf(!hasPostgres)('with the PostgreSQL server of Debian', () => {
    let server: PostgresServer;
    let store: EmbeddedStore;
    let rigs = 0;
    beforeAll(async () => {
      server = await startPostgres();
      store = await openAt(await server.database(), systemClock, silentLogger);
    });
    afterAll(async () => {
      await store?.[Symbol.asyncDispose]();
      await server?.[Symbol.asyncDispose]();
    });
    channelContract(`${name}, its state in PostgreSQL`, () => {
      rigs += 1;
      return startRig(store.scope(`rig ${rigs}`));
    });
  });
}
