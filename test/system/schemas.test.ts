// A store of every released schema is migrated to that of today with what is in it. A newer one is refused, with the version
// that wrote it and the way back.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { MIGRATIONS, openDatabase } from '../../src/kernel/bus/store/database.ts';
import { runNanobot, temporaryHome } from '../cli/run-nanobot.ts';

const VERSIONS = MIGRATIONS.map((_, step) => step + 1);
/** Rows as every schema can hold them. */
const ROWS = `
  INSERT INTO inbound (id, session, state, body, received_at, accepted_at) VALUES
    ('telegram:1', 'telegram:7', 'done', NULL, 1, 1), ('telegram:2', 'telegram:7', 'pending', '{}', 1, 1);
  INSERT INTO session_lane (session, epoch) VALUES ('telegram:7', 3);
  INSERT INTO outbound (id, channel, lane, state, created_at, queued_at, settled_at) VALUES
    ('telegram:7#1/0', 'telegram', 'telegram:7', 'sent', 1, 1, 2);
  INSERT INTO key_value VALUES ('people', 'anna', '{"role":"owner"}', 1);
`;

function storeOf(version: number, path: string): void {
  const database = new DatabaseSync(path);
  for (const step of MIGRATIONS.slice(0, version)) database.exec(step);
  database.exec(`${ROWS} PRAGMA user_version = ${version};`);
  database.close();
}

/** What the migrations made, without differences in spacing. */
function schemaOf(path: string) {
  const database = new DatabaseSync(path, { readOnly: true });
  const tables = database.prepare(
    "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
  );
  const names = tables.all().map(({ name }) => String(name));
  const columns = names.map((name) => [name, database.prepare(`PRAGMA table_info(${name})`).all()]);
  const version = database.prepare('PRAGMA user_version').get();
  const indexes = database.prepare(
    "SELECT name FROM sqlite_schema WHERE type = 'index' ORDER BY name",
  );
  const found = { version, columns, indexes: indexes.all() };
  database.close();
  return found;
}

it.each(VERSIONS)('schema %i', async (version) => {
  await using home = await temporaryHome();
  const [path, fresh] = [join(home.path, 'state.db'), join(home.path, 'fresh.db')];
  storeOf(version, path);
  openDatabase(fresh).close();
  const { stdout } = await runNanobot(['status', '--json'], { home: home.path });
  expect(JSON.parse(stdout).messages).toMatchObject({ pending: 1, outboundQueued: 0 });
  expect(schemaOf(path)).toEqual(schemaOf(fresh));
  const database = new DatabaseSync(path, { readOnly: true });
  const kept = database.prepare('SELECT value FROM key_value WHERE key = ?').get('anna');
  database.close();
  expect(kept).toEqual({ value: '{"role":"owner"}' });
});

it('a newer one is refused, and the way back is named', async () => {
  await using home = await temporaryHome();
  const state = join(home.path, 'state.db');
  storeOf(MIGRATIONS.length, state);
  const database = new DatabaseSync(state);
  database.exec(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);
  database.close();
  const run = {
    ...{ step: 'done', from: '1.3.0', to: '1.4.0', prefix: '/opt', at: 0, pid: 1 },
    backup: { place: '/backups', id: '2026-01-15-ab' },
  };
  await writeFile(join(home.path, 'update.json'), JSON.stringify(run));
  const { code, stderr } = await runNanobot(['status'], { home: home.path });
  expect(code).toBe(1);
  expect(stderr).toContain('written by a newer nanobot');
  expect(stderr).toContain('nanobot 1.4.0 was installed here');
  expect(stderr).toContain('backup restore 2026-01-15-ab --from /backups --force');
});
