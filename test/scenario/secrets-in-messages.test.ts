// A person writes a configured secret: the model never sees it, and what it is shown of the message is the
// same in every later call, also after a restart.

import { afterAll, expect, it } from 'vitest';
import { callTools, type LlmRequest, say } from '../support/llm-server.ts';
import { MODEL_KEY, startTelegramWorld } from '../support/telegram-world.ts';

const PERSON = 950;

const world = await startTelegramWorld({
  respond: ({ toolResults, lastUserText }) =>
    toolResults.length === 0 && lastUserText.includes('first')
      ? callTools({ name: 'list_dir', arguments: {} })
      : say(`heard ${/first|second|third/.exec(lastUserText)?.[0]}`),
  channel: { allowFrom: [`${PERSON}`] },
});
afterAll(() => world[Symbol.asyncDispose]());

const asks = (words: string) => world.asks(PERSON, words, /^heard/);
const messagesOf = ({ body }: LlmRequest) =>
  (body['messages'] as { role: string; content: unknown }[]).filter(
    ({ role }) => role !== 'system',
  );

it('is redacted before the first call and the same in each later one', async () => {
  await asks(`first: my key is ${MODEL_KEY}, keep it`);
  await asks('second');
  await world.restart();
  await asks('third');
  const { requests } = world.model;
  expect(requests).toHaveLength(4);
  for (const { body } of requests) {
    expect(JSON.stringify(body)).not.toContain(MODEL_KEY);
    expect(JSON.stringify(body)).toContain('my key is [redacted], keep it');
  }
  const first = requests.map((request) => JSON.stringify(messagesOf(request)[0]));
  expect(new Set(first).size).toBe(1);
});
