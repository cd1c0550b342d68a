// A conversation that grows long, as the person in the chat sees it: nobody waits, nothing is forgotten,
// not after a kill in the middle of a summary either, and /compact says what it did and how. The model of
// the summaries is on a server of its own.

import { afterAll, expect, it } from 'vitest';
import { type LlmReply, type LlmRequest, say, startLlmServer } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const PERSON = 800;
const CHATTER = 'and then it rained again, all day long, '.repeat(90);

const isForSummary = ({ system }: LlmRequest) => system.startsWith('You keep the notes');
const tokensOf = ({ body }: LlmRequest) => Math.ceil(JSON.stringify(body).length / 4);

/** Knows what the request shows, the system prompt left out. */
function honest(request: LlmRequest): LlmReply {
  const usage = { input: tokensOf(request), output: 20 };
  if (isForSummary(request)) return { ...say('Task: talk about the weather.'), usage };
  const { messages } = request.body as { messages: { role: string }[] };
  const shown = JSON.stringify(messages.filter(({ role }) => role !== 'system'));
  const code = /locker code is ([A-Z]+-\d+)/.exec(shown)?.[1] ?? 'not known to me';
  const isAsked = request.lastUserText.includes('What is');
  return { ...say(isAsked ? `It is ${code}.` : `heard ${tokensOf(request)}`), usage };
}

const toolsOf = (request: LlmRequest | undefined) =>
  (request?.body['tools'] as { function: { name: string } }[] | undefined)?.map(
    (tool) => tool.function.name,
  );

const summer = await startLlmServer({ respond: honest, models: ['sums-1'] });
const world = await startTelegramWorld({
  respond: honest,
  config: {
    providers: { groq: { apiKey: 'sk-of-the-sums', apiBase: summer.openaiBase } },
    agents: {
      defaults: {
        model: 'openai/sim-1',
        fastModel: 'groq/sums-1',
        maxContextTokens: 40_000,
        compaction: { watermarkTokens: 8000, keepTokens: 2000, summaryTokens: 500 },
      },
    },
  },
  channel: { allowFrom: [`${PERSON}`] },
});
const { telegram, model } = world;
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await summer[Symbol.asyncDispose]();
});

const asks = (text: string, answer: RegExp) => world.asks(PERSON, text, answer);

it('is summed up behind the answers, over a kill, and what was said first is still known', async () => {
  const began = Promise.withResolvers<void>();
  summer.respond(() => {
    began.resolve();
    return { fault: { kind: 'hang' } };
  });
  await asks('My locker code is KX-4711.', /heard/);
  const isLate = () => summer.requests.length > 0;
  for (let turn = 0; turn < 12 && !isLate(); turn += 1) await asks(`${turn} ${CHATTER}`, /heard/);
  await began.promise;
  const killed = summer.requests.length;
  await world.gateway.kill();
  summer.respond(honest);
  await world.start();
  telegram.say(PERSON, `again ${CHATTER}`);
  await asks('/compact', /messages? summarised|nothing to summarise/);
  expect(await asks('What is my locker code?', /^It is/)).toBe('It is KX-4711.');
  expect(summer.requests.slice(killed).filter(isForSummary).length).toBeGreaterThan(0);
  expect(model.requests.some(isForSummary)).toBe(false);
  const [last] = model.requests.slice(-1);
  expect(JSON.stringify(last?.body)).toContain('Summary of the earlier conversation');
  expect(JSON.stringify(last?.body)).not.toContain('0 and then it rained');

  expect(await asks('/compact engine', /engine is/)).toContain('summary');
  expect(toolsOf(last)).not.toContain('expand');
  await asks('/compact engine lossless', /engine is lossless/);
  for (const turn of ['one', 'two', 'three']) await asks(`${turn} ${CHATTER}`, /heard/);
  await asks('/compact', /messages? summarised/);
  const context = await asks('/context', /next call takes/);
  expect(context.match(/node t\d+-\d+/g)?.length).toBe(2);
  expect(context).toContain('node t0-');
  expect(await asks('What is my locker code?', /^It is/)).toBe('It is KX-4711.');
  expect(toolsOf(model.requests.at(-1))).toContain('expand');
  expect(JSON.stringify(model.requests.at(-1)?.body)).toContain('[Node t0-');
});
