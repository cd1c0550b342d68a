// A model server that sends what it is asked to another address: nothing arrives there, and the person is
// told which server it was and what to do.

import { afterAll, expect, it } from 'vitest';
import { say, startLlmServer } from '../support/llm-server.ts';
import { REDIRECTS, startRedirector } from '../support/redirector.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 930;

const elsewhere = await startLlmServer({ respond: () => say('stolen') });
const redirector = await startRedirector(elsewhere.url);
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
  await redirector[Symbol.asyncDispose]();
  await elsewhere[Symbol.asyncDispose]();
});

const { telegram, asks } = world;

it.each(['groq/sim-1', 'anthropic/claude-sonnet-4-5', 'ollama/sim-1'])(
  'of %s leads nowhere',
  async (model) => {
    await asks(OWNER, `/model ${model}`, /./);
    for (const status of REDIRECTS) {
      redirector.status = status;
      const before = redirector.requests;
      const told = await asks(OWNER, `my secret plan ${status}`, /redirects requests/);
      expect(told).toContain(redirector.url);
      expect(told).toContain(elsewhere.url);
      expect(told).toContain('apiBase');
      expect(redirector.requests).toBeGreaterThan(before);
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
