// The message bus, collections and sessions over PostgreSQL keep their contracts.

import { afterAll, beforeAll, describe } from 'vitest';
import { openPostgresStore } from '../../src/kernel/bus/store/postgres/store.ts';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { busContract, type MakeBusBench } from '../contract/bus.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { benchOver, clockOver } from './embedded-bench.ts';

let server: PostgresServer;
let url: string;

beforeAll(async () => {
  if (!hasPostgres) return;
  server = await startPostgres();
  url = await server.database();
});
afterAll(() => server?.[Symbol.asyncDispose]());

const makePostgresBench: MakeBusBench = async (limits) => {
  await server.query(url, 'DROP SCHEMA IF EXISTS nanobot CASCADE');
  const stores: EmbeddedStore[] = [];
  const clock = clockOver(stores);
  async function openStore() {
    const store = await openPostgresStore({ url, clock, log: silentLogger });
    stores.push(store);
    return store;
  }
  return benchOver(clock, openStore, limits, async () => undefined);
};

describe.skipIf(!hasPostgres)('with the PostgreSQL server of Debian', () => {
  busContract('bus on PostgreSQL', makePostgresBench);
});
