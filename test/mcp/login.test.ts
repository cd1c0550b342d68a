// The login to hosted tool servers, against a real server of the protocol with a strict authorization
// server in front of it.

import { expect, onTestFinished, test } from 'vitest';
import type { ToolServers } from '../../src/features/mcp/index.ts';
import { consentSecrets } from '../../src/lib/net/oauth-redirect.ts';
import { startMcpOAuthServer } from '../support/mcp-oauth-server.ts';
import { createMemoryHost } from '../support/memory-host.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { createMcpRig } from './mcp-rig.ts';

const REDIRECT = 'http://127.0.0.1:18790/api/mcp/redirect';

async function hosted() {
  let now = () => 0;
  const server = await startMcpOAuthServer(() => now());
  onTestFinished(() => server[Symbol.asyncDispose]());
  return {
    ...server,
    use: (clock: { now(): number }) => {
      now = () => clock.now();
    },
  };
}

async function rigFor(config: object) {
  const server = await hosted();
  const logins = createMemoryHost(createMovableClock()).state;
  const start = async (url = server.url) => {
    const rig = await createMcpRig({ notes: { url, ...config } }, {}, undefined, { logins });
    server.use(rig.clock);
    return rig;
  };
  return { server, logins, start };
}

function loginTo(servers: ToolServers) {
  const login = servers.login('notes');
  if (login === undefined) throw new Error('no login');
  return login;
}

/** What the owner does: opens the link and allows the access. Returns where the browser ends. */
async function consent(servers: ToolServers, redirect = REDIRECT): Promise<string> {
  const link = await loginTo(servers).begin(redirect, consentSecrets().state);
  const answer = await fetch(link, { redirect: 'manual' });
  return answer.headers.get('location') ?? `status ${answer.status}: ${await answer.text()}`;
}

test('a server that wants a login: the owner is told once, its tools work after the consent', async () => {
  const { server, start } = await rigFor({});
  const rig = await start();
  await rig.reaches('notes', 'login');
  expect(rig.needed).toEqual(['notes']);
  expect(rig.names()).toEqual([]);

  const end = await consent(rig.servers);
  expect(end).toContain(REDIRECT);
  expect(await rig.servers.redirected('/api/mcp/redirect?code=x&state=guessed')).toBeUndefined();
  expect(await rig.servers.redirected(end)).toBe('notes');
  await rig.reaches('notes', 'connected');
  const greet = () => rig.call('mcp_notes_greet', { name: 'Ann' });
  expect(await greet()).toMatchObject({ status: 'ok' });

  // A code works once.
  expect(await rig.servers.redirected(end)).toBeUndefined();
  expect(server.state.violations).toEqual([]);

  // Renewed before it ends, once for all calls, and once when the server refuses it.
  await rig.clock.jump((server.state.lifetimeSecs - 30) * 1000);
  expect(await Promise.all([greet(), greet(), greet()])).toMatchObject([
    { status: 'ok' },
    { status: 'ok' },
    { status: 'ok' },
  ]);
  expect(server.issued()).toBe(2);
  server.expire();
  expect(await greet()).toMatchObject({ status: 'ok' });
  expect(server.issued()).toBe(3);
  expect(server.state.violations).toEqual([]);

  // The consent is withdrawn: the tool says so, the owner is told again.
  server.revoke();
  expect(await greet()).toMatchObject({
    failure: 'permission',
    text: expect.stringContaining('needs a login by the owner'),
  });
  const again = async () => {
    await rig.clock.advance(1000);
    return rig.stateOf('notes');
  };
  await expect.poll(again, { timeout: 45_000, interval: 10 }).toBe('login');
  expect(rig.needed).toEqual(['notes', 'notes']);
  await rig.servers.redirected(await consent(rig.servers));
  await rig.reaches('notes', 'connected');
  expect(await greet()).toMatchObject({ status: 'ok' });
});

test('a login outlives a restart, and is of one address only', async () => {
  const { server, logins, start } = await rigFor({});
  const first = await start();
  await first.reaches('notes', 'login');
  await first.servers.redirected(await consent(first.servers));
  await first.reaches('notes', 'connected');
  await first.end();
  const second = await start();
  await second.reaches('notes', 'connected');
  expect(second.needed).toEqual([]);
  expect(server.issued()).toBe(1);
  await second.end();
  expect(JSON.stringify(await logins.list(''))).toContain('mcp-access-1');
  const moved = await start(`${server.root}/sse`);
  await moved.reaches('notes', 'login');
  // The token was sent to the address that it is for, and to no other.
  expect(server.state.violations).toEqual([]);
});

test('tokens appear in no text of the server', async () => {
  const { server, start } = await rigFor({});
  const rig = await start();
  await rig.reaches('notes', 'login');
  await rig.servers.redirected(await consent(rig.servers));
  await rig.reaches('notes', 'connected');
  const { text } = await rig.call('mcp_notes_greet', { name: 'mcp-access-1' });
  expect(text).toContain('[redacted]');
  expect(text).not.toContain('mcp-access-1');
  server.revoke();
  expect(JSON.stringify(rig.servers.report())).not.toContain('mcp-access');
});

test('an older server is reached over SSE, with a login, and again after its stream ended', async () => {
  const { server, start } = await rigFor({});
  const rig = await start(server.sseUrl);
  await rig.reaches('notes', 'login');
  await rig.servers.redirected(await consent(rig.servers));
  await rig.reaches('notes', 'connected');
  const greet = () => rig.call('mcp_notes_greet', { name: 'Old' });
  expect((await greet()).text).toContain('hello Old');
  server.endStreams();
  const back = async () => {
    await rig.clock.advance(1000);
    return rig.stateOf('notes') === 'connected' && (await greet()).text;
  };
  await expect.poll(back, { timeout: 45_000, interval: 10 }).toMatch(/hello Old/);
  expect(server.state.violations).toEqual([]);
});

test('a server without a login is asked for none, over either transport', async () => {
  const { server, start } = await rigFor({});
  server.state.isProtected = false;
  for (const url of [server.url, server.sseUrl]) {
    const rig = await start(url);
    await rig.reaches('notes', 'connected');
    expect(server.state.asked).toEqual([]);
    await rig.end();
  }
});

test('what a server says of its authorization server is not believed blindly', async () => {
  const { server, start } = await rigFor({});
  const rig = await start();
  await rig.reaches('notes', 'login');
  const attempt = async (change: Partial<typeof server.state>, answer: RegExp) => {
    const before = { ...server.state };
    Object.assign(server.state, change);
    const asked = server.state.asked.length;
    await expect(consent(rig.servers)).rejects.toThrow(answer);
    Object.assign(server.state, before);
    return server.state.asked.slice(asked);
  };
  await attempt({ resourceMetadata: { resource: 'https://other.example' } }, /another server/);
  await attempt({ serverMetadata: { issuer: 'https://other.example' } }, /another one/);
  await attempt({ serverMetadata: { code_challenge_methods_supported: ['plain'] } }, /PKCE/);
  await attempt({ serverMetadata: { registration_endpoint: undefined } }, /oauth\.clientId/);
  for (const address of ['http://other.example/token', 'javascript:alert(1)']) {
    const refused = /not encrypted|refused/;
    await attempt({ serverMetadata: { authorization_endpoint: address } }, refused);
    await attempt({ serverMetadata: { token_endpoint: address } }, refused);
  }
  // An address in a private network, of another machine.
  const inside = { serverMetadata: { registration_endpoint: 'https://192.168.7.7/register' } };
  await attempt(inside, /private network/);
  server.state.iss = 'https://other.example';
  await expect(rig.servers.redirected(await consent(rig.servers))).rejects.toThrow(
    'another authorization server',
  );
  server.state.iss = undefined;
  const late = await consent(rig.servers);
  await rig.clock.jump(16 * 60_000);
  await expect(rig.servers.redirected(late)).rejects.toThrow('the last 15 minutes');
  expect(server.state.asked).not.toContain('/token');
  expect(server.issued()).toBe(0);
});

test('a client of the owner is used instead of a registration', async () => {
  const { server, start } = await rigFor({ oauth: { clientId: 'client-1', scope: 'tools' } });
  const owner = await start();
  await owner.reaches('notes', 'login');
  await fetch(`${server.issuer}/register`, {
    method: 'POST',
    body: JSON.stringify({
      client_name: 'mine',
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    }),
  });
  const asked = server.state.asked.length;
  await owner.servers.redirected(await consent(owner.servers));
  await owner.reaches('notes', 'connected');
  expect(server.state.asked.slice(asked)).not.toContain('/register');
  expect(server.state.violations).toEqual([]);
});
