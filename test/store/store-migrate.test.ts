// `nanobot store migrate`: what is copied is the same, wherever it was killed; what differs, is of
// another installation or of a newer version is refused.

import { existsSync } from 'node:fs';
import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/kernel/bus/store/database.ts';
import { holdHome } from '../../src/kernel/bus/store/home-lock.ts';
import { NEWEST_SCHEMA } from '../../src/kernel/bus/store/postgres/schema.ts';
import { openPostgresStore } from '../../src/kernel/bus/store/postgres/store.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { systemClock as clock } from '../../src/lib/time/clock.ts';
import { runNanobot, type TemporaryHome, temporaryHome } from '../cli/run-nanobot.ts';
import { campaign } from '../support/campaign.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';

const V1 = join(import.meta.dirname, '../homes/v1/home');
const KILLS = campaign({ short: 1, full: 60 });
const ROWS = 6000;

let server: PostgresServer;
let home: TemporaryHome;
let kept: TemporaryHome;
let url: string;

beforeAll(async () => {
  if (!hasPostgres) return;
  server = await startPostgres();
  home = await temporaryHome();
  kept = await temporaryHome();
  url = await server.database();
  await cp(V1, home.path, { recursive: true, verbatimSymlinks: true });
  const config = JSON.parse(await readFile(join(home.path, 'config.json'), 'utf8'));
  await home.writeConfig({ ...config, backup: { to: join(kept.path, 'place') } });
  fill(join(home.path, 'state.db'));
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await home?.[Symbol.asyncDispose]();
  await kept?.[Symbol.asyncDispose]();
});

/** Rows that two databases could sort or show differently. */
function fill(path: string): void {
  const database = openDatabase(path);
  try {
    const insert = database.prepare('INSERT INTO key_value VALUES (?, ?, ?, ?)');
    database.exec('BEGIN');
    for (const key of ['é', 'z', 'Z', '_', '\u{1f600}', "a'b", '', 'a\\b']) {
      insert.run(
        'odd',
        key,
        JSON.stringify({ key, text: 'line\nquote"' }),
        Number.MAX_SAFE_INTEGER,
      );
    }
    for (let row = 0; row < ROWS; row += 1) insert.run('many', `k${row}`, `{"n":${row}}`, row);
    database.exec(`INSERT INTO session_entry (session, file, place, text) VALUES ('s', 'f', 0, 'x');
      COMMIT;
      UPDATE sqlite_sequence SET seq = seq + 1000 WHERE name = 'inbound'`);
  } finally {
    database.close();
  }
}

const TABLES = [
  'inbound',
  'session_lane',
  'outbound',
  'draft',
  'cursor',
  'key_value',
  'session_entry',
];

/** All rows of the file, and the numbers that were given. */
function contents(path: string) {
  const database = new DatabaseSync(path);
  try {
    const rows = (table: string) => database.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all();
    const given = database.prepare('SELECT * FROM sqlite_sequence ORDER BY name').all();
    return { given, ...Object.fromEntries(TABLES.map((table) => [table, rows(table)])) };
  } finally {
    database.close();
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

type Where = { readonly at?: string; readonly url?: string; readonly killAfter?: number };

async function migrate(to: string, where: Where = {}) {
  const { at = home.path, killAfter } = where;
  let heard = 0;
  return runNanobot(['store', 'migrate', '--to', to, '--url', 'DATABASE_URL'], {
    home: at,
    env: { DATABASE_URL: where.url ?? url },
    onOutput(_printed, _interrupt, pid) {
      heard += 1;
      if (heard !== killAfter || pid === undefined) return;
      setTimeout(() => tryKill(pid), Math.random() * 60);
    },
  });
}

const engineOf = async (path: string) =>
  JSON.parse(await readFile(join(path, 'config.json'), 'utf8')).store?.engine ?? 'sqlite';

/** A home whose store has nothing. */
async function emptyHome(): Promise<TemporaryHome> {
  const made = await temporaryHome();
  await made.writeConfig({ version: 1, backup: { to: join(kept.path, 'other') } });
  openDatabase(join(made.path, 'state.db')).close();
  return made;
}

describe.skipIf(!hasPostgres)('nanobot store migrate', () => {
  it('is refused while a gateway holds the home', async () => {
    const held = await holdHome(join(home.path, 'nanobot.lock'), { pid: process.pid });
    const { code, stderr } = await migrate('postgres');
    await held[Symbol.asyncDispose]();
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/already uses/);
  });

  it('copies there and back without a difference, wherever it is killed', async () => {
    const before = contents(join(home.path, 'state.db'));
    let kills = 0;
    do {
      for (const to of ['postgres', 'sqlite']) {
        for (let tries = 0; tries < 2 && kills < KILLS; tries += 1) {
          const killAfter = 2 + Math.floor(Math.random() * 12);
          const { code } = await migrate(to, { killAfter });
          if (code === 0) break;
          kills += 1;
        }
        const { code, stderr } = await migrate(to);
        // The kill may have come behind the last step.
        if (code !== 0)
          expect({ to, stderr }).toMatchObject({ stderr: expect.stringMatching(/already/) });
        expect(await engineOf(home.path)).toBe(to);
        expect(existsSync(join(home.path, 'state.db'))).toBe(to === 'sqlite');
        const indexed = 'nanobot.text_source';
        if (to === 'postgres') {
          expect(await lastNumbers()).toEqual(before.given);
          await server.query(url, `INSERT INTO ${indexed} VALUES ('n', 's', 'l', '', 0)`);
        } else {
          expect(contents(join(home.path, 'state.db'))).toEqual(before);
          expect(await server.query(url, `SELECT FROM ${indexed}`)).toEqual([]);
        }
      }
    } while (kills < KILLS);
  }, 900_000);

  it('finds a row that the database changed, switches nothing, and copies it again', async () => {
    await using other = await emptyHome();
    const state = openDatabase(join(other.path, 'state.db'));
    state.exec(`INSERT INTO key_value VALUES ('s', 'good', '1', 1), ('s', 'spoiled', '2', 1)`);
    state.close();
    const to = await madeDatabase();
    await server.query(
      to,
      `CREATE FUNCTION nanobot.spoil() RETURNS trigger LANGUAGE plpgsql
         AS $$ BEGIN IF NEW.key = 'spoiled' THEN NEW.value = '3'; END IF; RETURN NEW; END $$;
       CREATE TRIGGER spoil BEFORE INSERT ON nanobot.key_value
         FOR EACH ROW EXECUTE FUNCTION nanobot.spoil()`,
    );
    const failed = await migrate('postgres', { at: other.path, url: to });
    expect(failed.code).not.toBe(0);
    expect(failed.stderr).toMatch(
      /key_value: 2 and 2 rows, the first different one is s \/ spoiled/,
    );
    expect(await engineOf(other.path)).toBe('sqlite');
    await server.query(to, 'DROP TRIGGER spoil ON nanobot.key_value');
    const { code, stderr } = await migrate('postgres', { at: other.path, url: to });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const [row] = await server.query(
      to,
      `SELECT value FROM nanobot.key_value WHERE key = 'spoiled'`,
    );
    expect(row).toEqual({ value: '2' });
  });

  it('refuses a database with data of another installation, and names the remedy', async () => {
    await using other = await emptyHome();
    const to = await madeDatabase();
    await server.query(to, `INSERT INTO nanobot.key_value VALUES ('s', 'k', 'v', 1)`);
    const { code, stderr } = await migrate('postgres', { at: other.path, url: to });
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/holds other data.*createdb/s);
    expect(await engineOf(other.path)).toBe('sqlite');
    expect(await server.query(to, 'SELECT value FROM nanobot.key_value')).toEqual([{ value: 'v' }]);
  });

  it('refuses a database of a newer version, naming both', async () => {
    await using other = await emptyHome();
    const to = await madeDatabase();
    await server.query(to, 'UPDATE nanobot.schema_version SET version = 99');
    const { code, stderr } = await migrate('postgres', { at: other.path, url: to });
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/schema 99, this one knows \d+\)\. Install that version again/);
  });
});

describe.skipIf(!hasPostgres)('the schema in PostgreSQL', () => {
  it('of an earlier version is migrated once by several that come at the same time', async () => {
    const at = await madeDatabase();
    await server.query(
      at,
      `INSERT INTO nanobot.key_value VALUES ('s', 'k', 'v', 1); DROP TABLE nanobot.installation;
       DROP TABLE nanobot.leader, nanobot.node, nanobot.live_update;
       DROP TABLE nanobot.text_source, nanobot.text_part, nanobot.text_model, nanobot.text_waiting,
         nanobot.text_vector;
       DROP INDEX nanobot.session_entry_session, nanobot.session_entry_left, nanobot.outbound_sending;
       ALTER TABLE nanobot.process DROP COLUMN written_at;
       ALTER TABLE nanobot.session_entry DROP COLUMN in_file;
       UPDATE nanobot.schema_version SET version = 1`,
    );
    const open = () => openPostgresStore({ url: at, clock, log });
    const stores = await Promise.all(Array.from({ length: 4 }, open));
    for (const store of stores) {
      expect(await store.scope('s').get('k')).toBe('v');
      await store[Symbol.asyncDispose]();
    }
    const versions = await server.query(at, 'SELECT version FROM nanobot.schema_version');
    expect(versions).toEqual([{ version: String(NEWEST_SCHEMA) }]);
    expect(await server.query(at, 'SELECT * FROM nanobot.installation')).toEqual([]);
  });

  it('is made for a user of any name', async () => {
    const at = await server.database();
    const { password, pathname } = new URL(at);
    await server.query(
      at,
      `CREATE USER ann PASSWORD '${password}'; ALTER DATABASE ${pathname.slice(1)} OWNER TO ann`,
    );
    await using store = await openPostgresStore({
      url: at.replace('//nanobot:', '//ann:'),
      ...{ clock, log },
    });
    await store.scope('s').set('k', 'v');
    expect(await server.query(at, 'SELECT value FROM nanobot.key_value')).toEqual([{ value: 'v' }]);
  });
});

/** A database with the tables of today. */
async function madeDatabase(): Promise<string> {
  const made = await server.database();
  await (await openPostgresStore({ url: made, clock, log }))[Symbol.asyncDispose]();
  return made;
}

const lastNumbers = () =>
  server
    .query(
      url,
      `SELECT name, pg_sequence_last_value(pg_get_serial_sequence('nanobot.' || name, number))::int AS seq
       FROM (VALUES ('inbound', 'seq'), ('outbound', 'ord')) AS counted (name, number) ORDER BY name`,
    )
    .then((rows) => rows.map((row) => ({ ...row })));
