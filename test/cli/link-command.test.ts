// `nanobot link` beside a running gateway: what opens, what ends, and that everything else of the
// command line finds the token by itself.

import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { type LlmServer, say, startLlmServer } from '../support/llm-server.ts';
import { runNanobot } from './run-nanobot.ts';

const CONFIGURED = 'configured-and-long-enough';

let home: TestHome;
let server: LlmServer;

const config = (more: object = {}) => ({
  version: 1 as const,
  agents: { defaults: { model: 'local/sim' } },
  providers: { local: { apiBase: server.openaiBase } },
  gateway: { port: 0, ...more },
});

beforeEach(async () => {
  server = await startLlmServer();
  home = await makeTestHome(config());
});
afterEach(async () => {
  await home[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const nanobot = (...args: readonly string[]) => runNanobot(args, { home: home.path });
const madeToken = async () => (await readFile(join(home.path, 'gateway-token'), 'utf8')).trim();

async function statusWith({ address }: GatewayProcess, secret: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}` };
  return (await fetch(`${address}/api/status`, { headers })).status;
}

/** What the page does with a link. */
async function open(link: string): Promise<Response> {
  const { origin, hash } = new URL(link);
  return fetch(`${origin}/api/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code: hash.replace('#login=', '') }),
  });
}

const loginAnswer = z.object({ session: z.string() });

async function sessionOf(link: string): Promise<string> {
  const answer = await (await open(link)).json();
  return loginAnswer.parse(answer).session;
}

describe('nanobot link', () => {
  test('prints a link that opens the page once, and nothing else on stdout', async () => {
    const gateway = await home.start();
    const { code, stdout, stderr } = await nanobot('link');
    expect([code, stderr.trim()]).toEqual([0, 'The link works once, within 15 minutes.']);
    expect(stdout.trim()).toMatch(new RegExp(`^${gateway.address}/#login=[\\w-]{43}$`));
    const statuses = [(await open(stdout.trim())).status, (await open(stdout.trim())).status];
    expect(statuses).toEqual([200, 401]);
  });

  test('needs a gateway that runs', async () => {
    const { code, stderr } = await nanobot('link');
    expect([code, stderr]).toEqual([6, expect.stringContaining('nanobot gateway')]);
  });

  test('--revoke-all ends the logins, their streams and the token; the command line goes on', async () => {
    const gateway = await home.start();
    const before = await madeToken();
    const session = await sessionOf(gateway.link);
    const stream = await fetch(`${gateway.address}/api/web/chats/a/events`, {
      headers: { authorization: `Bearer ${session}` },
    });
    const { code, stdout } = await nanobot('link', '--revoke-all');
    expect(code).toBe(0);
    await stream.text();
    expect(await madeToken()).not.toBe(before);
    expect((await stat(join(home.path, 'gateway-token'))).mode & 0o777).toBe(0o600);
    expect([await statusWith(gateway, session), await statusWith(gateway, before)]).toEqual([
      401, 401,
    ]);
    expect(await statusWith(gateway, await sessionOf(stdout.trim()))).toBe(200);
    server.script(say('still here'));
    const { stdout: answer } = await nanobot('agent', '-m', 'are you there?');
    expect(answer).toContain('still here');
    expect((await nanobot('status', '--json')).stdout).toContain('local/sim');
    expect(await home.logs()).not.toMatch(new RegExp(`${before}|${session}|${await madeToken()}`));
  });

  test('a configured token counts at once when it changes, and closes what the old one opened', async () => {
    await home.writeConfig(config({ token: CONFIGURED }));
    const gateway = await home.start();
    const session = await sessionOf((await nanobot('link')).stdout.trim());
    expect(await statusWith(gateway, CONFIGURED)).toBe(200);
    expect(await statusWith(gateway, await madeToken())).toBe(401);
    const stream = await fetch(`${gateway.address}/api/web/chats/a/events`, {
      headers: { authorization: `Bearer ${session}` },
    });
    expect((await nanobot('config', 'set', 'gateway.token', `${CONFIGURED}-2`)).code).toBe(0);
    await stream.text();
    await gateway.printed(/is in force/);
    expect(await statusWith(gateway, `${CONFIGURED}-2`)).toBe(200);
    expect([await statusWith(gateway, session), await statusWith(gateway, CONFIGURED)]).toEqual([
      401, 401,
    ]);
    expect((await nanobot('config', 'unset', 'gateway.token')).code).toBe(0);
    await gateway.printed(/(?:is in force.*){2}/s);
    expect(await statusWith(gateway, await madeToken())).toBe(200);
    expect(await statusWith(gateway, `${CONFIGURED}-2`)).toBe(401);
  });

  test('--revoke-all leaves a configured token as it is, and says so', async () => {
    await home.writeConfig(config({ token: CONFIGURED }));
    const gateway = await home.start();
    const session = await sessionOf(gateway.link);
    const { stderr } = await nanobot('link', '--revoke-all');
    expect(stderr).toContain('gateway.token is configured and stays the same');
    expect([await statusWith(gateway, session), await statusWith(gateway, CONFIGURED)]).toEqual([
      401, 200,
    ]);
  });
});
