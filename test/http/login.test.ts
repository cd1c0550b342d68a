// Logins over their life: from the code to the session, over restarts, to their end.

import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { CODE_LIFETIME_MS, openAccess, SESSION_LIFETIME_MS } from '../../src/http/access.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { createMemoryStore } from '../support/memory-host.ts';
import { type HttpRig, startHttp } from './http-rig.ts';

const TOKEN = 'a-long-and-random-token';
const DAY_MS = 86_400_000;
const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

async function link(rig: HttpRig, body: object = {}): Promise<string> {
  const answer = await rig.post('/api/links', body, bearer(TOKEN));
  expect([answer.status, answer.headers['cache-control']]).toEqual([201, 'no-store']);
  return JSON.parse(answer.body).code;
}

async function logIn(rig: HttpRig, code: string): Promise<string> {
  const answer = await rig.post('/api/login', { code });
  expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'no-store']);
  return JSON.parse(answer.body).session;
}

const statusOf = async (rig: HttpRig, secret: string) =>
  (await rig.ask('/api/status', { headers: bearer(secret) })).status;

describe('a login', () => {
  it('opens with one code, once, also for two who click at the same time', async () => {
    await using rig = await startHttp({ token: TOKEN });
    const code = await link(rig);
    const tries = Array.from({ length: 20 }, () => rig.post('/api/login', { code }));
    const statuses = (await Promise.all(tries)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 401)).toHaveLength(19);
  });

  it('is not opened by a code that waited for a quarter of an hour', async () => {
    await using rig = await startHttp({ token: TOKEN });
    const [early, late] = [await link(rig), await link(rig)];
    await rig.clock.advance(CODE_LIFETIME_MS - 1);
    expect(await statusOf(rig, await logIn(rig, early))).toBe(200);
    await rig.clock.advance(1);
    expect((await rig.post('/api/login', { code: late })).status).toBe(401);
  });

  it('needs no more than ten links at once: the oldest gives way', async () => {
    await using rig = await startHttp({ token: TOKEN });
    const oldest = await link(rig);
    for (let made = 0; made < 10; made += 1) await link(rig);
    expect((await rig.post('/api/login', { code: oldest })).status).toBe(401);
  });

  it('lasts over a restart of the gateway, but not over a change of its token', async () => {
    const logins = createMemoryStore();
    const first = await startHttp({ token: TOKEN, logins });
    const session = await logIn(first, await link(first));
    const unused = await link(first);
    await first.close();
    await using again = await startHttp({ token: TOKEN, logins });
    expect(await statusOf(again, session)).toBe(200);
    expect((await again.post('/api/login', { code: unused })).status).toBe(401);
    const rows = JSON.stringify(await logins.list(''));
    expect(rows).not.toContain(session.slice('page_'.length));
    await using changed = await startHttp({ token: `${TOKEN}-2`, logins });
    expect(await statusOf(changed, session)).toBe(401);
  });

  it('holds for each of the requests by which another process first hears of it, also before its news', async () => {
    let written = 0;
    const rows = createMemoryStore();
    const list = async (prefix: string) => {
      await nextTurn();
      return rows.list(prefix);
    };
    const shared = { state: { ...rows, list }, revision: () => written };
    const open = () =>
      openAccess({ token: TOKEN, ...shared, clock: systemClock, log: silentLogger, randomBytes });
    const [here, there] = [await open(), await open()];
    const logIn = async () => (await here.redeem((await here.makeCode()).code)) ?? '';
    expect(await there.bySession(await logIn())).toMatchObject({ kind: 'session' });
    const session = await logIn();
    written += 1;
    const found = await Promise.all([1, 2, 3].map(() => there.bySession(session)));
    expect(found).toEqual(found.map(() => expect.objectContaining({ kind: 'session' })));
  });

  it('opens by a link and holds in another process, whichever reads the logins meanwhile', async () => {
    let written = 0;
    const rows = createMemoryStore();
    const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const set = async (key: string, value: string) => {
      written += 1;
      await nextTurn();
      if (written === 2) {
        begun.resolve();
        await gate.promise;
      }
      await rows.set(key, value);
    };
    const shared = { state: { ...rows, set }, revision: () => written };
    const open = () =>
      openAccess({ token: TOKEN, ...shared, clock: systemClock, log: silentLogger, randomBytes });
    const [here, there] = [await open(), await open()];
    const { code } = await here.makeCode();
    const redeeming = there.redeem(code);
    await Promise.race([begun.promise, redeeming]);
    expect(await there.bySession(`page_${'A'.repeat(43)}`)).toBeUndefined();
    gate.resolve();
    const session = (await redeeming) ?? '';
    expect(await there.bySession(session)).toMatchObject({ kind: 'session' });
    expect(await here.bySession(session)).toMatchObject({ kind: 'session' });
  });

  it('stays ended although a read of the logins under way still contains it', async () => {
    let written = 0;
    const rows = createMemoryStore();
    const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const list = async (prefix: string) => {
      const found = await rows.list(prefix);
      if (written === 0) return found;
      begun.resolve();
      await gate.promise;
      return found;
    };
    const access = await openAccess({
      ...{ token: TOKEN, state: { ...rows, list }, revision: () => written },
      ...{ clock: systemClock, log: silentLogger, randomBytes },
    });
    const session = (await access.redeem((await access.makeCode()).code)) ?? '';
    expect(await access.bySession(session)).toMatchObject({ kind: 'session' });
    written += 1;
    const reading = access.bySession(session);
    await begun.promise;
    await access.revokeAll();
    gate.resolve();
    expect(await reading).toBeUndefined();
    expect(await access.bySession(session)).toBeUndefined();
  });

  it('gives way after fifty later ones, also over a restart: the one unused for longest', async () => {
    const logins = createMemoryStore();
    const first = await startHttp({ token: TOKEN, logins });
    const sessions: string[] = [];
    for (let made = 0; made < 50; made += 1) {
      await first.clock.advance(1000);
      sessions.push(await logIn(first, await link(first)));
    }
    await first.close();
    await using again = await startHttp({ token: TOKEN, logins });
    await again.clock.advance(60_000);
    sessions.push(await logIn(again, await link(again)));
    const statuses = await Promise.all(sessions.map((session) => statusOf(again, session)));
    expect(statuses).toEqual([401, ...Array.from({ length: 50 }, () => 200)]);
  });

  it('lasts while it is used, and ends after thirty days without', async () => {
    const logins = createMemoryStore();
    await using rig = await startHttp({ token: TOKEN, logins });
    const session = await logIn(rig, await link(rig));
    for (let day = 0; day < 90; day += 20) {
      await rig.clock.advance(20 * DAY_MS);
      expect(await statusOf(rig, session)).toBe(200);
    }
    await rig.clock.advance(SESSION_LIFETIME_MS + 1);
    expect(await statusOf(rig, session)).toBe(401);
    expect(await logins.list('')).toEqual([]);
  });

  it('is one of fifty at most: the one used longest ago ends', async () => {
    await using rig = await startHttp({ token: TOKEN });
    const first = await logIn(rig, await link(rig));
    const second = await logIn(rig, await link(rig));
    for (let made = 0; made < 49; made += 1) await logIn(rig, await link(rig));
    expect([await statusOf(rig, first), await statusOf(rig, second)]).toEqual([401, 200]);
  });
});

describe('an end of all logins', () => {
  const follow = (rig: HttpRig, secret: string) =>
    fetch(`${rig.address}/api/web/chats/a/events`, { headers: bearer(secret) });

  it('by `revokeAll` closes fifty open streams and every way in but the new link', async () => {
    const logins = createMemoryStore();
    await using rig = await startHttp({ token: TOKEN, logins });
    const sessions: string[] = [];
    for (let made = 0; made < 5; made += 1) sessions.push(await logIn(rig, await link(rig)));
    const unused = await link(rig);
    const openings = Array.from({ length: 50 }, (_, index) =>
      follow(rig, [...sessions, TOKEN][index % 6] ?? ''),
    );
    const streams = await Promise.all(openings);
    expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200));
    const fresh = await link(rig, { revokeAll: true });
    const ended = await Promise.all(streams.map((stream) => stream.text()));
    expect(ended).toHaveLength(50);
    for (const session of sessions) expect(await statusOf(rig, session)).toBe(401);
    expect((await rig.post('/api/login', { code: unused })).status).toBe(401);
    expect(await logins.list('')).toEqual([]);
    expect(await statusOf(rig, await logIn(rig, fresh))).toBe(200);
  });

  it('by a changed token closes what the old one opened; the old one opens nothing more', async () => {
    await using rig = await startHttp({ token: TOKEN });
    const session = await logIn(rig, await link(rig));
    const streams = [await follow(rig, session), await follow(rig, TOKEN)];
    await rig.access.useToken(TOKEN);
    expect(await statusOf(rig, session)).toBe(200);
    await rig.access.useToken('another-long-and-random-token');
    await Promise.all(streams.map((stream) => stream.text()));
    expect([await statusOf(rig, session), await statusOf(rig, TOKEN)]).toEqual([401, 401]);
    expect(await statusOf(rig, 'another-long-and-random-token')).toBe(200);
  });

  it('by a blank token lets nobody in', async () => {
    await using rig = await startHttp({ token: TOKEN });
    await rig.access.useToken('');
    for (const secret of ['', ' ', TOKEN, 'undefined', 'null']) {
      expect(await statusOf(rig, secret)).toBe(401);
    }
  });
});
