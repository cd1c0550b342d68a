// The engines of the full-text index, each with what several processes see of one index.

import { join } from 'node:path';
import { afterAll, beforeAll, describe, onTestFinished } from 'vitest';
import { createFileIndex } from '../../src/kernel/bus/store/file-index.ts';
import { openPostgresStore } from '../../src/kernel/bus/store/postgres/store.ts';
import type { TextIndex } from '../../src/kernel/bus/store/text-index.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { temporaryFolder } from '../sessions/session-folder.ts';
import { createMovableClock } from './movable-clock.ts';
import { hasPostgres, type PostgresServer, startPostgres } from './postgres.ts';

export type IndexProcesses = {
  /** A further process that uses the same, at first empty, index. */
  open(): Promise<TextIndex>;
};

/** Runs the tests on each engine; those on PostgreSQL are skipped where it is not installed. */
export function onEachIndex(tests: (processes: () => Promise<IndexProcesses>) => void): void {
  describe('in a file', () => tests(inFile));
  describe.skipIf(!hasPostgres)('in PostgreSQL', () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server?.[Symbol.asyncDispose]());
    tests(async () => inPostgres(await server.emptied()));
  });
}

async function inFile(): Promise<IndexProcesses> {
  const path = join(await temporaryFolder(), 'index.db');
  return {
    async open() {
      const index = createFileIndex({ path, log: silentLogger });
      onTestFinished(() => index[Symbol.asyncDispose]());
      return index;
    },
  };
}

export function inPostgres(url: string): IndexProcesses {
  return {
    async open() {
      const store = await openPostgresStore({
        url,
        clock: createMovableClock(),
        log: silentLogger,
      });
      onTestFinished(() => store[Symbol.asyncDispose]());
      if (store.textIndex === undefined) throw new Error('the store has no index');
      return store.textIndex;
    },
  };
}
