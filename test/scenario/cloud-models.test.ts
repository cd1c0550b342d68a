// An Ollama on this machine that lists cloud models beside its own, by their usual names and by another
// one: they are no local models, whoever asks.

import { afterAll, expect, it } from 'vitest';
import { echo, startLlmServer } from '../support/llm-server.ts';
import { localDialect } from '../support/local-dialects.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 940;
const sizes = { loadedTokens: 16_384, trainedTokens: 131_072 };
const remoteHost = 'https://ollama.com:443';
const MODELS = [
  { id: 'gpt-oss:120b-cloud', ...sizes, remoteHost },
  { id: 'my-alias', ...sizes, remoteHost },
  { id: 'llama3.2:3b', ...sizes },
];

const local = await startLlmServer({
  respond: echo,
  models: MODELS.map(({ id }) => id),
  side: localDialect('ollama', MODELS).route,
});
const world = await startTelegramWorld({
  respond: echo,
  config: {
    providers: { ollama: { apiBase: local.openaiBase } },
    retry: { providerAttempts: 0 },
  },
  pair: { [OWNER]: 'owner' },
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await local[Symbol.asyncDispose]();
});

const asks = (words: string, like: RegExp) => world.asks(OWNER, words, like);

it('are marked in the list and never chosen by /local', async () => {
  const listed = await asks('/local list', /llama/);
  expect(listed).toMatch(/gpt-oss:120b-cloud, cloud model/);
  expect(listed).toMatch(/my-alias, cloud model/);
  expect(listed).not.toMatch(/llama3\.2:3b, cloud model/);
  expect(await asks('/local', /on your own machine/)).toContain('ollama/llama3.2:3b');
  await asks('/local off', /again/);
  expect(await asks('/local my-alias', /./)).toContain('my-alias is a cloud model');
  expect(await asks('/local default gpt-oss:120b-cloud', /./)).toContain('is a cloud model');
});

it.each(['ollama/my-alias', 'ollama/gpt-oss:120b-cloud'])(
  'are refused under /local only: %s',
  async (model) => {
    await asks(`/model ${model}`, /./);
    expect(await asks('/local only', /Nothing of this conversation/)).toContain(
      'is no longer used',
    );
    const before = local.requests.length;
    await asks('for this machine alone', /No model was asked/);
    expect(local.requests.length).toBe(before);
    await asks('/local off', /Any model may be used/);
  },
);
