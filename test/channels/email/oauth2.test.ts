// The tokens of a mailbox against a strict authorization server: consent, refreshes of several
// processes, and refresh tokens that are void after their first use.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { AccessTokens, keepGrant } from '../../../src/channels/email/access-tokens.ts';
import {
  type Consent,
  consentInBrowser,
  consentOnDevice,
} from '../../../src/channels/email/consent.ts';
import type { OAuth2Provider } from '../../../src/channels/email/settings.ts';
import { createMemoryHost } from '../../support/memory-host.ts';
import { createMovableClock, type MovableClock } from '../../support/movable-clock.ts';
import { CLIENT, startTokenServer, type TokenServer } from '../../support/token-server.ts';

const MAILBOX = 'agent@nanobot.test';
let server: TokenServer;
let clock: MovableClock;
let rows: ReturnType<typeof createMemoryHost>['state'];

beforeEach(async () => {
  clock = createMovableClock();
  server = await startTokenServer(MAILBOX, clock.now);
  rows = createMemoryHost(clock).state;
});
afterEach(() => server[Symbol.asyncDispose]());

const settings = (refreshToken = 'first-refresh-token') => ({
  ...CLIENT,
  ...{ tokenUrl: '', authorizeUrl: '', deviceUrl: '', scope: '', refreshToken },
});
const provider = (): OAuth2Provider => ({
  ...{ authorizeUrl: server.authorizeUrl, deviceUrl: server.deviceUrl, tokenUrl: server.tokenUrl },
  ...{ scope: 'mail', redirectHost: '127.0.0.1', parameters: {} },
});
/** One process: what it holds in memory is its own, the rows are everybody's. */
const startProcess = (refreshToken?: string, state = rows) =>
  new AccessTokens({
    ...{ settings: settings(refreshToken), username: MAILBOX, endpoint: provider(), clock, state },
  });

it('refreshes once for all that ask at the same time, in this and in another process', async () => {
  server.rotates = true;
  const [one, other] = [startProcess(), startProcess()];
  let isReleased = false;
  const waiting = Promise.withResolvers<void>();
  server.hold = () => waiting.promise;
  const all = Promise.all([one.current(), one.current(), other.current()]);
  while (server.requests.length === 0) await new Promise(setImmediate);
  waiting.resolve();
  all.finally(() => {
    isReleased = true;
  });
  while (!isReleased) await clock.advance(100);
  expect(new Set(await all)).toEqual(new Set(['access-token-1']));
  expect(server.requests).toHaveLength(1);
  expect(server.violations).toEqual([]);
});

it('keeps the next refresh token before it uses the access token, through restarts', async () => {
  server.rotates = true;
  for (let round = 1; round <= 3; round += 1) {
    expect(await startProcess().current()).toBe(`access-token-${round}`);
    // A restart takes the stored access token and voids nothing.
    expect(await startProcess().current()).toBe(`access-token-${round}`);
    await clock.advance(server.lifetimeSecs * 1000);
  }
  expect(server.requests).toHaveLength(3);
  expect(server.violations).toEqual([]);
});

it('refreshes five minutes before the end of a token', async () => {
  const tokens = startProcess();
  await tokens.current();
  await clock.advance(54 * 60_000);
  expect(await tokens.current()).toBe('access-token-1');
  await clock.advance(2 * 60_000);
  expect(await tokens.current()).toBe('access-token-2');
});

it('goes on with the new refresh token where the disk was full when it came', async () => {
  server.rotates = true;
  let isFull = false;
  const full = {
    ...{ get: rows.get.bind(rows), set: rows.set.bind(rows) },
    async swap(...change: Parameters<typeof rows.swap>) {
      if (isFull) throw new Error('the disk is full');
      return rows.swap(...change);
    },
  };
  server.hold = async () => {
    isFull = true;
  };
  const tokens = new AccessTokens({
    ...{ settings: settings(), username: MAILBOX, endpoint: provider(), clock, state: full },
  });
  await expect(tokens.current()).rejects.toThrow('the disk is full');
  Object.assign(server, { hold: undefined });
  isFull = false;
  expect(await tokens.current()).toBe('access-token-1');
  await clock.advance(server.lifetimeSecs * 1000);
  expect(await startProcess().current()).toBe('access-token-2');
  expect(server.violations).toEqual([]);
});

it('takes over the refresh of a process that died in it', async () => {
  server.fault = { status: 503, body: '' };
  server.hold = () => new Promise(() => undefined);
  void startProcess()
    .current()
    .catch(() => undefined);
  while (server.requests.length === 0) await new Promise(setImmediate);
  Object.assign(server, { fault: undefined, hold: undefined });
  let token: string | undefined;
  void startProcess()
    .current()
    .then((found) => {
      token = found;
    });
  await clock.advance(34_000);
  expect(server.requests).toHaveLength(1);
  while (token === undefined) await clock.advance(1000);
  expect(token).toBe('access-token-1');
});

it('reads the row of an earlier version, which is the refresh token itself', async () => {
  server.refreshToken = 'stored-by-an-earlier-version';
  await startProcess()
    .current()
    .catch(() => undefined);
  const [{ key } = { key: '' }] = await rows.list('oauth2/');
  await rows.set(key, 'stored-by-an-earlier-version');
  expect(await startProcess().current()).toBe('access-token-1');
});

it('reports a refused grant once, until somebody logs in again', async () => {
  server.refreshToken = undefined;
  const tokens = startProcess('');
  await keepGrant(rows, settings(''), MAILBOX, { refreshToken: 'withdrawn' });
  for (const isNew of [true, false]) {
    await expect(tokens.current()).rejects.toMatchObject({ code: 'mail_token_refused' });
    expect(await tokens.isNewlyRefused()).toBe(isNew);
    expect(await startProcess('').isNewlyRefused()).toBe(false);
  }
  server.refreshToken = 'granted-again';
  await keepGrant(rows, settings(''), MAILBOX, { refreshToken: 'granted-again' });
  expect(await tokens.current()).toBe('access-token-1');
});

it('asks nobody where no one has logged in yet', async () => {
  await expect(startProcess('').current()).rejects.toThrow('nobody logged in to this mailbox yet');
  expect(server.requests).toEqual([]);
});

type Shown = { readonly said: string[]; readonly consent: Consent; link(): string };

function showing(): Shown {
  const said: string[] = [];
  const signal = AbortSignal.timeout(45_000);
  const say = (text: string) => void said.push(text);
  const own = { settings: settings(''), provider: provider(), username: MAILBOX, clock };
  return {
    said,
    consent: { ...own, signal, say },
    link: () => /https?:\S+$/m.exec(said[0] ?? '')?.[0] ?? '',
  };
}

async function until(holds: () => boolean) {
  while (!holds()) await new Promise(setImmediate);
}

/** What a browser does with the link: follows the redirect to this machine. */
const browse = async (link: string) => (await fetch(link)).text();

it('gets a grant from the consent in a browser', async () => {
  const shown = showing();
  const granted = consentInBrowser(shown.consent);
  await until(() => shown.said.length > 0);
  expect(await browse(shown.link())).toContain('The login is complete');
  expect(await granted).toMatchObject({
    refreshToken: 'refresh-token-2',
    accessToken: 'access-token-1',
  });
  expect(server.violations).toEqual([]);
  expect(new URL(shown.link()).searchParams.get('code_verifier')).toBeNull();
});

it('ignores a redirect that is not the answer to its own request', async () => {
  const shown = showing();
  const granted = consentInBrowser(shown.consent);
  await until(() => shown.said.length > 0);
  const { searchParams } = new URL(shown.link());
  const redirect = searchParams.get('redirect_uri') ?? '';
  for (const query of ['code=stolen', 'code=stolen&state=guessed', 'error=access_denied']) {
    const answer = await fetch(`${redirect}?${query}`);
    expect(answer.status).toBe(400);
  }
  const elsewhere = new URL(`/other?code=x&state=${searchParams.get('state')}`, redirect);
  expect((await fetch(elsewhere)).status).toBe(400);
  expect(server.requests).toEqual([]);
  await browse(shown.link());
  expect(await granted).toMatchObject({ accessToken: 'access-token-1' });
});

it('takes the address that a person pastes from a browser on another machine', async () => {
  const shown = showing();
  const granted = consentInBrowser(shown.consent, async (isValid) => {
    await until(() => shown.said.length > 0);
    const { headers } = await fetch(shown.link(), { redirect: 'manual' });
    const ended = headers.get('location') ?? '';
    expect(isValid('http://127.0.0.1/oauth2?code=other&state=other')).toBe(false);
    expect(isValid(ended)).toBe(true);
    return ended;
  });
  expect(await granted).toMatchObject({ accessToken: 'access-token-1' });
});

it('says that the access was not allowed', async () => {
  server.decision = 'deny';
  const shown = showing();
  const granted = consentInBrowser(shown.consent);
  granted.catch(() => undefined);
  await until(() => shown.said.length > 0);
  expect(await browse(shown.link())).toContain('The login was refused');
  await expect(granted).rejects.toThrow('the access was not allowed (access_denied)');
});

it('polls for a code on another device as fast as it may, and slower once told to', async () => {
  const shown = showing();
  const granted = consentOnDevice(shown.consent);
  await until(() => shown.said.length > 0);
  expect(shown.said[0]).toContain('enter the code WDJB-MJHT');
  const advanceTo = async (polls: number) => {
    while (server.requests.length < polls) await clock.advance(1000);
  };
  await advanceTo(2);
  // The server wants longer pauses than it announced.
  server.fault = { status: 400, body: JSON.stringify({ error: 'slow_down' }) };
  await advanceTo(3);
  server.fault = undefined;
  const before = clock.now();
  await advanceTo(4);
  expect(clock.now() - before).toBeGreaterThanOrEqual(9000);
  server.isDeviceAllowed = true;
  await advanceTo(5);
  expect(await granted).toMatchObject({ refreshToken: 'refresh-token-2' });
  expect(server.violations).toEqual([]);
});

it('stops polling when the code has expired or was refused', async () => {
  const shown = showing();
  const expired = consentOnDevice(shown.consent);
  const outcome = expect(expired).rejects.toThrow('expired_token');
  await until(() => shown.said.length > 0);
  server.fault = { status: 503, body: '' };
  let isOver = false;
  void outcome.then(() => {
    isOver = true;
  });
  while (!isOver) await clock.advance(5000);
  server.fault = undefined;
  server.decision = 'deny';
  const refused = expect(consentOnDevice(showing().consent)).rejects.toThrow('access_denied');
  const asked = server.requests.length;
  while (server.requests.length === asked) await clock.advance(1000);
  await refused;
});
