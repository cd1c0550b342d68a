// A model server that sends what it is asked to another address: nothing arrives there, and the person is
// told which server it was and what to do.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, it } from 'vitest';
import { say, startLlmServer } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 930;
const STATUSES = [301, 302, 303, 307, 308];

/** Answers each request with the status of now and the same path elsewhere. */
async function startRedirector(to: () => string) {
  const state = { status: 307, requests: 0 };
  const server = createServer((request, response) => {
    state.requests += 1;
    response.writeHead(state.status, { location: `${to()}${request.url ?? ''}` }).end();
    request.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    state,
    url: `http://127.0.0.1:${port}`,
    close: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  };
}

const elsewhere = await startLlmServer({ respond: () => say('stolen') });
const redirector = await startRedirector(() => elsewhere.url);
const world = await startTelegramWorld({
  config: {
    agents: { defaults: { model: 'groq/sim-1', fastModel: 'groq/sim-1' } },
    providers: {
      groq: { apiKey: 'sk-groq-of-the-test', apiBase: `${redirector.url}/v1` },
      anthropic: { apiKey: 'sk-ant-of-the-test', apiBase: redirector.url },
      ollama: { apiBase: `${redirector.url}/v1` },
    },
    retry: { providerAttempts: 0 },
  },
  pair: { [OWNER]: 'owner' },
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await redirector.close();
  await elsewhere[Symbol.asyncDispose]();
});

const { telegram, asks } = world;

it.each(['groq/sim-1', 'anthropic/claude-sonnet-4-5', 'ollama/sim-1'])(
  'of %s leads nowhere',
  async (model) => {
    await asks(OWNER, `/model ${model}`, /./);
    for (const status of STATUSES) {
      redirector.state.status = status;
      const before = redirector.state.requests;
      const told = await asks(OWNER, `my secret plan ${status}`, /redirects requests/);
      expect(told).toContain(redirector.url);
      expect(told).toContain(elsewhere.url);
      expect(told).toContain('apiBase');
      expect(redirector.state.requests).toBeGreaterThan(before);
    }
    expect(elsewhere.requests).toEqual([]);
    expect(telegram.violations).toEqual([]);
  },
);

it('of a local server leads nowhere under /local only either', async () => {
  await asks(OWNER, '/model ollama/sim-1', /./);
  await asks(OWNER, '/local only', /./);
  await asks(OWNER, 'for this machine alone', /redirects requests/);
  expect(elsewhere.requests).toEqual([]);
});
