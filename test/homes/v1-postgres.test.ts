// The home of an earlier commit whose store was copied to PostgreSQL, back, and there again; in the
// full campaign.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect } from 'vitest';
import { runNanobot, temporaryHome } from '../cli/run-nanobot.ts';
import { isFullCampaign } from '../support/campaign.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { finishesOpenThings } from './open-things.ts';

let server: PostgresServer;
afterAll(() => server?.[Symbol.asyncDispose]());

describe.skipIf(!hasPostgres || !isFullCampaign())('on PostgreSQL', () => {
  finishesOpenThings(async ({ path }) => {
    server = await startPostgres();
    const env = { DATABASE_URL: await server.database() };
    await using place = await temporaryHome();
    for (const to of ['postgres', 'sqlite', 'postgres']) {
      const args = ['--to', to, '--url', 'DATABASE_URL', '--backup', join(place.path, 'kept')];
      const { code, stderr } = await runNanobot(['store', 'migrate', ...args], { home: path, env });
      expect({ to, code, stderr }).toMatchObject({ code: 0 });
      expect(existsSync(join(path, 'state.db'))).toBe(to === 'sqlite');
    }
    return env;
  });
});
