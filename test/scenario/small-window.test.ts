// A model whose window of context is small, as the person in the chat meets it: what was said right before
// is always known, and what had to give way is said once.

import { expect, it, onTestFinished } from 'vitest';
import { campaign } from '../support/campaign.ts';
import { type LlmReply, type LlmRequest, say } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const PERSON = 910;

const isForSummary = ({ system }: LlmRequest) => system.startsWith('You keep the notes');
const tokensOf = ({ body }: LlmRequest) => Math.ceil(JSON.stringify(body).length / 4);
const words = (count: number, word: string) => `${word} `.repeat(count).trim();

/** `size`: words of the answer. */
function answer(request: LlmRequest, size: number): LlmReply {
  const usage = { input: tokensOf(request), output: 20 };
  if (isForSummary(request)) return { ...say('Task: talk about the garden.'), usage };
  const turn = /QUESTION-(\d+)-/.exec(request.lastUserText)?.[1] ?? '?';
  return { ...say(`ANSWER-${turn}- ${words(size, 'flower')} END-OF-${turn}-`), usage };
}

const TURNS = campaign({ short: 12, full: 40 });

async function open(maxContextTokens: number, size: number) {
  const world = await startTelegramWorld({
    respond: (request) => answer(request, size),
    config: { agents: { defaults: { model: 'openai/sim-1', maxContextTokens, maxTokens: 1000 } } },
    pair: { [PERSON]: 'owner' },
  });
  onTestFinished(() => world[Symbol.asyncDispose]());
  return world;
}

const shown = ({ body }: LlmRequest) =>
  JSON.stringify((body['messages'] as { role: string }[]).filter(({ role }) => role !== 'system'));

it.each([
  { window: 4096, size: 30 },
  { window: 4096, size: 200 },
  { window: 8192, size: 30 },
  { window: 8192, size: 300 },
  { window: 16_000, size: 400 },
])(
  'of $window tokens is shown the exchange before in each of many turns with $size words',
  async ({ window, size }) => {
    const { asks, model } = await open(window, size);
    const missing: string[] = [];
    for (let turn = 1; turn <= TURNS; turn += 1) {
      await asks(
        PERSON,
        `QUESTION-${turn}- ${words(size, 'garden')} ASKED-${turn}-`,
        new RegExp(`END-OF-${turn}-`),
      );
      const request = model.requests.findLast(({ lastUserText }) =>
        lastUserText.includes(`ASKED-${turn}-`),
      );
      if (request === undefined) throw new Error('not asked');
      const seen = shown(request);
      for (const mark of ['QUESTION', 'ASKED', 'ANSWER', 'END-OF']) {
        if (turn > 1 && !seen.includes(`${mark}-${turn - 1}-`)) missing.push(`${turn}: ${mark}`);
      }
      expect(tokensOf(request) + 1000).toBeLessThanOrEqual(window);
    }
    expect(missing).toEqual([]);
  },
);

it('is told to the owner once, and /context says what is left out and names the limit', async () => {
  const { asks, texts, model } = await open(4096, 30);
  for (let turn = 1; turn <= 3; turn += 1) {
    await asks(PERSON, `QUESTION-${turn}- ASKED-${turn}-`, new RegExp(`END-OF-${turn}-`));
  }
  await expect
    .poll(() => texts(PERSON).filter((text) => text.includes('holds 4,096 tokens')))
    .toHaveLength(1);
  const context = await asks(PERSON, '/context', /next call takes/);
  expect(context).toMatch(/Tools offered \(\d+\): \d+; \d+ left out to save room/);
  expect(context).toContain('Limit: 2,662; above it the oldest exchanges are left out');
  const tools = model.requests.at(-1)?.body['tools'] as { function: { name: string } }[];
  expect(tools.map((tool) => tool.function.name)).toContain('read_earlier');
});
