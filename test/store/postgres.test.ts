// The gateway's store in PostgreSQL: alone in its database, and patient with a server that goes away.

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Turn } from '../../src/kernel/bus/bus.ts';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import type { Sql } from '../../src/kernel/bus/store/key-value.ts';
import { PostgresCommits, SILENCE_MS } from '../../src/kernel/bus/store/postgres/commits.ts';
import { Connection, shownServer } from '../../src/kernel/bus/store/postgres/connection.ts';
import { openPostgresStore } from '../../src/kernel/bus/store/postgres/store.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { systemClock as clock } from '../../src/lib/time/clock.ts';
import {
  queued,
  resultOf,
  scriptedCourier,
  startDelivery,
  startWork,
} from '../contract/bus-bench.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { hasPgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { hasPostgres, PASSWORD, type PostgresServer, startPostgres } from '../support/postgres.ts';

let server: PostgresServer;
beforeAll(async () => {
  if (hasPostgres) server = await startPostgres();
});
afterAll(() => server?.[Symbol.asyncDispose]());

const MESSAGES = 200;
const LIMITS = { maxPendingPerChat: 1000, maxPending: 10_000 };

describe.skipIf(!hasPostgres)('the store of a gateway in PostgreSQL', () => {
  it('refuses a second gateway, not a command, and is free again after the first', async () => {
    const url = await server.database();
    const options = { url, clock, log, isGateway: true };
    {
      await using _first = await openPostgresStore(options);
      await expect(openPostgresStore(options)).rejects.toMatchObject({ code: 'store_held' });
      await using command = await openPostgresStore({ url, clock, log });
      expect((await command.stats()).pending).toBe(0);
    }
    await using _second = await openPostgresStore(options);
  });

  it('hears that a command has written', async () => {
    const url = await server.database();
    await using gateway = await openPostgresStore({ url, clock, log, isGateway: true });
    await using command = await openPostgresStore({ url, clock, log });
    gateway.changedOutside();
    await command.scope('s').set('k', 'a\0b');
    await expect.poll(() => gateway.changedOutside()).toBe(true);
    expect(await gateway.scope('s').get('k')).toBe('a\u{fffd}b');
  });

  it('names neither the password nor a row in an error', async () => {
    const url = (await server.database()).replace(PASSWORD, 'wrong-pass-phrase');
    const error = await openPostgresStore({ url, clock, log }).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'store_forbidden' });
    expect(`${error.message} ${error.stack} ${error.cause}`).not.toContain('wrong-pass-phrase');
  });

  it('gives up no transaction that takes long because the network is slow', async () => {
    const url = await server.database();
    const connect = () => Connection.open({ url, name: 'nanobot slow' });
    const how = { server: shownServer(url), connect, marks: () => [], clock, log };
    const commits = new PostgresCommits(await connect(), how);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      // It begins anew with each answer.
      const asking = (sql: Sql) => {
        vi.advanceTimersByTime(SILENCE_MS / 2);
        return [1, 2, 3].map((n) => sql.first(`SELECT ${n} AS n`));
      };
      expect(await commits.read(asking)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    } finally {
      vi.useRealTimers();
      await commits.close();
    }
  });

  it('waits no minute for a server that stands still when its process ends', async () => {
    const url = await server.database();
    const node = { name: 'n', role: 'all', version: '1', config: '' } as const;
    const shared = { isGateway: true, isShared: true, node };
    await using store = await openPostgresStore({ url, clock, log, ...shared });
    server.pause();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      const written = store.scope('s').set('k', 'v');
      const refused = expect(written).rejects.toMatchObject({ code: 'store_unreachable' });
      store.endSoon?.();
      // By then it is sent.
      await new Promise(setImmediate);
      vi.advanceTimersByTime(SILENCE_MS / 2);
      await refused;
      const alone = store.shared?.exclusively(async () => 'ran');
      await expect(alone).rejects.toMatchObject({ code: 'store_unreachable' });
    } finally {
      vi.useRealTimers();
      server.resume();
    }
  });

  it('loses and doubles nothing while the server crashes and connections are cut', async () => {
    const url = await server.database();
    await using store = await openPostgresStore({ url, clock, log, isGateway: true });
    const bus = createMessageBus({ store, clock, log, limits: LIMITS });
    const courier = scriptedCourier({ onUnknown: 'idempotent' });
    const work = startWork(bus, async (turn) =>
      resultOf(turn, turn.messages.map(({ message }) => message.text).join(' ')),
    );
    const delivery = startDelivery(bus, courier);
    const accepted: unknown[] = [];
    for (let index = 0; index < MESSAGES; index += 1) {
      void bus
        .accept([queued(`chat${index % 7}`, `m${index}`)])
        .then((made) => accepted.push(...made));
      if (index % 20 === 10) await cut(url);
      if (index % 60 === 40) {
        await server.crash();
        await server.start();
      }
      await clock.sleep(2);
    }
    const texts = () => courier.texts().flatMap((text) => text.split(' '));
    await expect.poll(() => texts().length, { timeout: 30_000 }).toBe(MESSAGES);
    expect(accepted).toEqual(Array.from({ length: MESSAGES }, () => 'accepted'));
    expect(new Set(texts()).size).toBe(MESSAGES);
    for (let chat = 0; chat < 7; chat += 1) {
      const said = courier.sent.filter(({ message }) => message.chat.chat === `chat${chat}`);
      const order = said.flatMap(({ message }) => message.markdown.split(' '));
      expect(order).toEqual(order.toSorted((a, b) => Number(a.slice(1)) - Number(b.slice(1))));
    }
    await work.stop();
    await delivery.stop();
  });
});

describe.skipIf(!hasPostgres)('what the server refuses to store', () => {
  /** Rows like these are refused with this SQLSTATE, each of them counted. */
  async function refuse(url: string, on: string, state: string) {
    await server.query(
      url,
      `CREATE SEQUENCE nanobot.refused MINVALUE 0;
       CREATE FUNCTION nanobot.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         PERFORM nextval('nanobot.refused');
         RAISE EXCEPTION 'refused' USING ERRCODE = '${state}'; END $$;
       CREATE TRIGGER refuse BEFORE ${on} EXECUTE FUNCTION nanobot.refuse()`,
    );
    return {
      times: async () => {
        const [row] = await server.query(url, 'SELECT last_value AS times FROM nanobot.refused');
        return Number(row?.['times']);
      },
      end: () =>
        server.query(url, 'DROP FUNCTION nanobot.refuse CASCADE; DROP SEQUENCE nanobot.refused'),
    };
  }

  it('for lack of room is not done again: neither an answer nor a send', async () => {
    const url = await server.database();
    await using store = await openPostgresStore({ url, clock, log, isGateway: true });
    const bus = createMessageBus({ store, clock, log, limits: LIMITS });
    const courier = scriptedCourier({ announcesRequests: true });
    let turns = 0;
    const work = startWork(bus, async (turn) => {
      turns += 1;
      return resultOf(turn, 'answer');
    });
    const delivery = startDelivery(bus, courier);
    for (const on of [
      'INSERT ON nanobot.outbound FOR EACH ROW',
      `UPDATE ON nanobot.outbound FOR EACH ROW WHEN (NEW.state = 'sent')`,
    ]) {
      const refusal = await refuse(url, on, '53100');
      await bus.accept([queued('c', on)]);
      await expect.poll(refusal.times).toBeGreaterThan(0);
      await refusal.end();
      const rest = { pending: 0, running: 0, outboundQueued: 0, unknown: 0, dead: 0 };
      await expect.poll(() => bus.stats()).toMatchObject(rest);
    }
    expect({ turns, sent: courier.texts() }).toEqual({ turns: 2, sent: ['answer', 'answer'] });
    await work.stop();
    await delivery.stop();
  });

  it('leaves no turn with a process that works again', async () => {
    const url = await server.database();
    const node = { name: 'n', role: 'all', version: '1', config: '' } as const;
    const shared = { isGateway: true, isShared: true, node };
    await using store = await openPostgresStore({ url, clock, log, ...shared });
    const bus = createMessageBus({ store, clock, log, limits: LIMITS });
    const answer = async (turn: Turn) => resultOf(turn, 'answer');
    const refusal = await refuse(url, 'INSERT ON nanobot.outbound FOR EACH ROW', '23514');
    const failed = startWork(bus, answer);
    await bus.accept([queued('c', 'm')]);
    await expect(failed.over).rejects.toMatchObject({ code: 'store_failed' });
    await refusal.end();
    const work = startWork(bus, answer);
    await expect.poll(() => bus.stats()).toMatchObject({ pending: 0, outboundQueued: 1 });
    await work.stop();
  });
});

describe.skipIf(!hasPostgres)('a server with a standby', () => {
  const kinds = [
    { kind: 'the one gateway', shared: {} },
    {
      kind: 'one of several processes',
      shared: { isShared: true, node: { name: 'n', role: 'all', version: '1', config: '' } },
    },
  ] as const;
  it('has what is acknowledged on the standby, also where the connection was cut meanwhile', async () => {
    await using primary = await startPostgres();
    const direct = await primary.database();
    await using standby = await primary.standby();
    await using address = await startFaultProxy({ port: primary.port });
    const url = direct.replace(String(primary.port), String(address.port));
    const waiting = async () => {
      const rows = await primary.query(
        direct,
        `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'`,
      );
      return rows.map(({ pid }) => pid);
    };
    for (const { kind, shared } of kinds) {
      await using store = await openPostgresStore({
        ...{ url, clock, log, isGateway: true },
        ...shared,
      });
      const bus = createMessageBus({ store, clock, log, limits: LIMITS });
      await standby.crash();
      let accepted: unknown;
      void bus.accept([queued('c', kind)]).then((made) => {
        accepted = made;
      });
      await expect.poll(waiting).toHaveLength(1);
      const before = await waiting();
      address.lead(primary.port);
      const others = async () => (await waiting()).filter((pid) => !before.includes(pid));
      await expect.poll(others, { message: kind }).toHaveLength(1);
      expect(accepted, kind).toBeUndefined();
      await standby.start();
      await expect.poll(() => accepted, { message: kind }).toEqual(['accepted']);
    }
  });
});

describe.skipIf(!hasPostgres || !hasPgBouncer)('a standby behind PgBouncer', () => {
  it('is waited for until it is the primary', async () => {
    await using primary = await startPostgres();
    const direct = await primary.database();
    await using standby = await primary.standby();
    await using address = await startFaultProxy({ port: primary.port });
    const url = direct.replace(String(primary.port), String(address.port));
    await using pooler = await startPgBouncer(url, 2);
    let refusals = 0;
    const counting = {
      ...log,
      warn(message: string) {
        if (message === 'database not reachable') refusals += 1;
      },
    };
    await using store = await openPostgresStore({
      ...{ url, poolUrl: pooler.urlOf(url), clock, log: counting, isGateway: true },
      ...{ isShared: true, node: { name: 'n', role: 'all', version: '1', config: '' } },
    });
    await primary.lose();
    address.lead(standby.port);
    let led: unknown;
    const leading = store.shared?.lead('an account').then((epoch) => {
      led = epoch;
    });
    await Promise.race([leading, expect.poll(() => refusals).toBeGreaterThan(5)]);
    expect(led).toBeUndefined();
    const alone = () => store.shared?.exclusively(async () => 'ran');
    await expect(alone()).rejects.toMatchObject({ name: 'StoreError' });
    await standby.promote();
    // Until its row, which was not on the standby, is written anew, it may lead nothing.
    await leading;
    await expect.poll(() => store.shared?.lead('an account')).toBeGreaterThan(0);
    expect(await alone()).toBe('ran');
  });
});

describe.skipIf(!hasPostgres)('a server with a certificate', () => {
  it('is used if the certificate is its own, and refused by every mode that encrypts if not', async () => {
    await using secure = await startPostgres(['ssl=on']);
    const url = await secure.database();
    const named = url.replace('127.0.0.1', 'localhost');
    const root = `sslrootcert=${join(secure.folder, 'cert.pem')}`;
    {
      await using store = await openPostgresStore({
        url: `${named}?sslmode=verify-full&${root}`,
        ...{ clock, log },
      });
      await store.scope('s').set('k', 'v');
      const [row] = await secure.query(
        url,
        `SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
         WHERE application_name LIKE 'nanobot %'`,
      );
      expect(row).toEqual({ ssl: true });
    }
    for (const refused of [
      `${named}?sslmode=verify-full`,
      `${named}?sslmode=require`,
      `${url}?sslmode=verify-full&${root}`,
      `${url}?sslmode=require&${root}`,
    ]) {
      const error = await openPostgresStore({ url: refused, clock, log }).catch((thrown) => thrown);
      expect(error, refused).toMatchObject({
        code: 'store_unreachable',
        message: expect.stringMatching(/CERT|ALTNAME/),
      });
      expect(`${error.message} ${error.stack}`).not.toContain(PASSWORD);
    }
  });
});

const cut = (url: string) =>
  server.query(
    url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'nanobot %'`,
  );
