// The message bus of one of several processes keeps its contract, through PgBouncer in transaction
// mode. Only in the full campaign.

import { afterAll, beforeAll, describe } from 'vitest';
import { openPostgresStore } from '../../src/kernel/bus/store/postgres/store.ts';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { busContract, type MakeBusBench } from '../contract/bus.ts';
import { CHANNEL } from '../contract/bus-bench.ts';
import { isFullCampaign } from '../support/campaign.ts';
import { hasPgBouncer, type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { benchOver, clockOver } from './embedded-bench.ts';

const isSkipped = !hasPostgres || !hasPgBouncer || !isFullCampaign();
const SESSIONS = 3;

let server: PostgresServer;
let pooler: PgBouncer;
let url: string;

beforeAll(async () => {
  if (isSkipped) return;
  server = await startPostgres();
  url = await server.database();
  pooler = await startPgBouncer(url, SESSIONS);
});
afterAll(async () => {
  await pooler?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

const makePooledBench: MakeBusBench = async (limits) => {
  await server.query(url, 'DROP SCHEMA IF EXISTS nanobot CASCADE');
  const stores: EmbeddedStore[] = [];
  const clock = clockOver(stores);
  async function openStore() {
    // One that comes later takes the place of one that has died.
    for (const store of stores) await store[Symbol.asyncDispose]();
    const store = await openPostgresStore({
      ...{ url, poolUrl: pooler.urlOf(url), clock, log: silentLogger },
      ...{ isGateway: true, isShared: true },
      node: { name: `n${stores.length}`, role: 'all', version: '1', config: '' },
    });
    stores.push(store);
    await store.shared?.lead(CHANNEL);
    return store;
  }
  return benchOver(clock, openStore, limits, async () => undefined);
};

describe.skipIf(isSkipped)('of several processes, through PgBouncer', () => {
  busContract('bus through PgBouncer', makePooledBench, 'of several');
});
