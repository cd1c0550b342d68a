// A gateway whose store is a PostgreSQL database: people talk to it, it is killed, the database is
// away for a while, a second gateway comes.

import { existsSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runNanobot, temporaryHome } from '../cli/run-nanobot.ts';
import {
  EMBEDDING_KEY,
  type EmbeddingServer,
  startEmbeddingServer,
} from '../support/embedding-server.ts';
import { echo } from '../support/llm-server.ts';
import { hasPostgres, PASSWORD, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { startTelegramWorld, type TelegramWorld } from '../support/telegram-world.ts';

/** What is new is looked for every few seconds. */
const INDEXED = { timeout: 30_000 };
const OWNER = 900;
const FRIEND = 901;

let server: PostgresServer;
let world: TelegramWorld;
let embeddings: EmbeddingServer;
let url: string;

beforeAll(async () => {
  if (!hasPostgres) return;
  server = await startPostgres();
  url = await server.database();
  embeddings = await startEmbeddingServer();
  world = await startTelegramWorld({
    respond: echo,
    config: {
      store: { engine: 'postgres', url: { env: 'DATABASE_URL' } as unknown as string },
      search: {
        embeddings: { model: 'sim-embed', apiBase: embeddings.base, apiKey: EMBEDDING_KEY },
      },
    },
    files: { 'docs/lease.md': 'The landlord gets 900 francs on the first day of each month.\n' },
    env: { DATABASE_URL: url },
    channel: { streaming: false },
  });
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await embeddings?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

/** A command beside the gateway; what it printed. */
async function nanobot(...args: readonly string[]) {
  const env = { DATABASE_URL: url };
  const { code, stdout, stderr } = await runNanobot(args, { home: world.home.path, env });
  return { code, text: stdout + stderr };
}

const says = (chat: number, nonce: string) => world.telegram.say(chat, `repeat nonce-${nonce}`);
/** How often the bot has said it. */
const count = (chat: number, nonce: string) =>
  world.texts(chat).filter((text) => text.includes(`nonce-${nonce}`)).length;
const answered = (chat: number, nonce: string) =>
  world.telegram.waitFor(() => count(chat, nonce) > 0, 45_000);

describe.skipIf(!hasPostgres)('a gateway on PostgreSQL', () => {
  it('talks with those whom a command let in, and has no state.db', async () => {
    const approved = await nanobot('pair', 'approve', 'telegram', String(OWNER), '--role', 'owner');
    expect(approved).toMatchObject({ code: 0 });
    await nanobot('pair', 'approve', 'telegram', String(FRIEND));
    says(OWNER, 'a1');
    says(FRIEND, 'b1');
    await answered(OWNER, 'a1');
    await answered(FRIEND, 'b1');
    expect(existsSync(join(world.home.path, 'state.db'))).toBe(false);
    const [row] = await server.query(
      url,
      `SELECT (SELECT count(*) FROM nanobot.inbound WHERE state IN ('done', 'recorded')) AS messages,
        (SELECT count(*) FROM nanobot.key_value) AS rows`,
    );
    expect(Number(row?.['messages'])).toBe(2);
    expect(Number(row?.['rows'])).toBeGreaterThan(2);
  });

  it('has the search index and its vectors in the database', async () => {
    const vectors = async () => {
      const [row] = await server.query(
        url,
        `SELECT max(vector.id) AS newest FROM nanobot.text_vector vector
         JOIN nanobot.text_part part ON part.id = vector.part WHERE text LIKE '%landlord%'`,
      );
      return Number(row?.['newest']);
    };
    await expect.poll(vectors, INDEXED).toBeGreaterThan(0);
    const first = await vectors();
    expect((await nanobot('status')).text).toMatch(
      /Search by meaning +\d+ passages with sim-embed/,
    );
    expect(await nanobot('memory', 'reindex')).toMatchObject({ code: 0 });
    await expect.poll(vectors, INDEXED).toBeGreaterThan(first);
    expect(existsSync(join(world.home.path, 'index.db'))).toBe(false);
  });

  it('loses and doubles nothing when it is killed in the middle of a turn', async () => {
    const begun = Promise.withResolvers<void>();
    const never = new Promise<never>(() => undefined);
    world.model.respond((request) => {
      begun.resolve();
      return { ...echo(request), gate: never };
    });
    says(OWNER, 'a2');
    says(FRIEND, 'b2');
    await begun.promise;
    await world.gateway.kill();
    says(FRIEND, 'b3');
    world.model.respond(echo);
    await world.start();
    await answered(OWNER, 'a2');
    await answered(FRIEND, 'b3');
    says(OWNER, 'a4');
    await answered(OWNER, 'a4');
    const doubles = ['a1', 'a2', 'a4'].map((nonce) => count(OWNER, nonce));
    expect([...doubles, ...['b1', 'b2', 'b3'].map((nonce) => count(FRIEND, nonce))]).toEqual(
      Array.from({ length: 6 }, () => 1),
    );
  });

  it('acknowledges nothing while the database is away, and answers when it is back', async () => {
    await server.crash();
    says(OWNER, 'a5');
    await expect.poll(() => world.home.logs()).toContain('database not reachable');
    expect(JSON.stringify(world.telegram.unconfirmed)).toContain('nonce-a5');
    expect(count(OWNER, 'a5')).toBe(0);
    const { code, text } = await nanobot('doctor');
    expect(code).toBe(1);
    expect(text).toMatch(/store +postgres:\/\/127\.0\.0\.1:\d+\/\S+ is not reachable/);
    expect(text).not.toContain('telegram-access');
    const status = (await nanobot('status')).text;
    expect(status).toMatch(/Database +postgres:\S+ is not reachable/);
    expect(status).toMatch(/telegram +on as/);
    await server.start();
    await answered(OWNER, 'a5');
    says(OWNER, 'a6');
    await answered(OWNER, 'a6');
    expect([count(OWNER, 'a5'), count(OWNER, 'a6')]).toEqual([1, 1]);
    expect(world.telegram.unconfirmed).toEqual([]);
  });

  it('is the only gateway of its database', async () => {
    await using other = await temporaryHome();
    await other.writeConfig({ store: { engine: 'postgres', url }, gateway: { port: 0 } });
    const { code, stderr } = await runNanobot(['gateway'], { home: other.path });
    expect(code).toBe(1);
    expect(stderr).toMatch(/Another gateway uses postgres:.*store\.url/);
    expect(stderr).not.toContain(PASSWORD);
  });

  it('shows the database to the doctor, its password to nobody', async () => {
    const { text } = await nanobot('doctor');
    expect(text).toMatch(/database +postgres:\S+ \(PostgreSQL \d+[.\d]*, schema \d+\)/);
    const shown = [text, await world.home.logs(), (await nanobot('config', 'show')).text];
    expect(shown.join('\n')).not.toContain(PASSWORD);
  });

  it('backs up the files and says what backs up the database', async () => {
    await using place = await temporaryHome();
    const to = join(place.path, 'backups');
    const made = await nanobot('backup', 'create', '--to', to);
    expect(made).toMatchObject({ code: 0, text: expect.stringContaining('pg_dump') });
    const verified = await nanobot('backup', 'verify', '--from', to);
    expect(verified).toMatchObject({ code: 0 });
  });

  it('refuses a database of a newer version', async () => {
    const other = await server.database();
    await server.query(
      other,
      `CREATE SCHEMA nanobot; CREATE TABLE nanobot.schema_version (version BIGINT);
       INSERT INTO nanobot.schema_version VALUES (99)`,
    );
    await using home = await temporaryHome();
    await home.writeConfig({ store: { engine: 'postgres', url: other }, gateway: { port: 0 } });
    const { code, stderr } = await runNanobot(['gateway'], { home: home.path });
    expect(code).toBe(1);
    expect(stderr).toMatch(/newer nanobot \(schema 99/);
  });

  it('refuses to leave a state.db behind, and a setting without an address', async () => {
    await using home = await temporaryHome();
    await writeFile(join(home.path, 'state.db'), '');
    await home.writeConfig({ store: { engine: 'postgres', url }, gateway: { port: 0 } });
    const { code, stderr } = await runNanobot(['gateway'], { home: home.path });
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not in the database'),
    });
    await rename(join(home.path, 'state.db'), join(home.path, 'aside.db'));
    await home.writeConfig({ store: { engine: 'postgres', url: { env: 'NO_SUCH_URL' } } });
    const status = await runNanobot(['pair', 'list'], { home: home.path });
    expect(status.stderr).toMatch(/store\.url.*NO_SUCH_URL/);
    const several = 'postgres://u:p@a,b/nanobot?target_session_attrs=read-write';
    await home.writeConfig({ store: { engine: 'postgres', url: several } });
    const refused = await runNanobot(['pair', 'list'], { home: home.path });
    expect(refused.stderr).toMatch(/store\.url.*several servers/);
  });
});
