import { afterAll, beforeAll, describe } from 'vitest';
import { testSessionStore } from '../contract/session-store.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { createSessionFolder } from './session-folder.ts';

let server: PostgresServer;
beforeAll(async () => {
  if (hasPostgres) server = await startPostgres();
});
afterAll(() => server?.[Symbol.asyncDispose]());

testSessionStore('JSONL files', async () => {
  const { open } = await createSessionFolder();
  return { store: open(), reopen: async () => open() };
});

describe.skipIf(!hasPostgres)('with the PostgreSQL server of Debian', () => {
  testSessionStore('JSONL files, their journal in PostgreSQL', async () => {
    const { open } = await createSessionFolder({}, await server.emptied());
    return { store: open(), reopen: async () => open() };
  });
});
