// What is kept of people between a simulated platform, the whole program and a simulated model: found
// again over conversations, shown, handed out and forgotten, and nothing of it to anybody else.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { runNanobot } from '../cli/run-nanobot.ts';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { makeTestHome, type TestHome } from '../support/gateway-process.ts';
import {
  callTools,
  type LlmReply,
  type LlmRequest,
  type LlmServer,
  say,
  startLlmServer,
} from '../support/llm-server.ts';

const OLGA = { id: 700, first_name: 'Olga' };
const ANNA = { id: 701, first_name: 'Anna' };

let telegram: BotApi;
let model: LlmServer;
let home: TestHome;

/** `call <tool> <json>` has the tool called, and its result is the answer. */
function obedient({ lastUserText, toolResults }: LlmRequest): LlmReply {
  const result = toolResults.at(-1);
  if (result !== undefined) return say(`result: ${result.text}`);
  const [, name, json = '{}'] = /call (\w+) (\{.*\})/.exec(lastUserText) ?? [];
  return name === undefined
    ? say(`heard: ${lastUserText}`)
    : callTools({ name, arguments: JSON.parse(json) });
}

const heardBy = (chat: number) =>
  telegram.chat(chat).messages.flatMap(({ from, text }) => (from === 'bot' ? [text] : []));

/** The answer to it. */
function asks(person: typeof OLGA, text: string, answer: RegExp): Promise<string> {
  const before = heardBy(person.id).length;
  telegram.say(person, text);
  const found = () =>
    heardBy(person.id)
      .slice(before)
      .find((said) => answer.test(said));
  return telegram.waitFor(found, 20_000);
}

beforeAll(async () => {
  telegram = await startBotApi();
  model = await startLlmServer({ respond: obedient });
  const { token, apiRoot } = telegram;
  home = await makeTestHome({
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: 'sk-memory', apiBase: model.openaiBase } },
    channels: {
      telegram: {
        ...{ enabled: true, token, apiRoot },
        ...{ allowFrom: [`${ANNA.id}`] },
      },
    },
    gateway: { port: 0 },
    coalesce: { quietMs: 0, continuationMs: 0 },
  });
  await home.start();
  const args = ['pair', 'approve', 'telegram', `${OLGA.id}`, '--role', 'owner'];
  expect((await runNanobot(args, { home: home.path })).code).toBe(0);
}, 60_000);

afterAll(async () => {
  await home[Symbol.asyncDispose]();
  expect(telegram.violations).toEqual([]);
  await telegram[Symbol.asyncDispose]();
  await model[Symbol.asyncDispose]();
});

it('finds what a person said before a new start, and never what another said', async () => {
  await asks(ANNA, 'my parrot Coco bites', /^heard:/);
  await asks(OLGA, 'the safe code is 9911', /^heard:/);
  await asks(ANNA, '/new', /A new conversation begins/);
  const found = await asks(ANNA, 'call session_search {"query":"parrots"}', /^result:/);
  expect(found).toContain('my parrot Coco bites');
  expect(found).toMatch(/20\d\d-\d\d-\d\d \d\d:\d\d UTC/);
  const secret = { query: 'safe code 9911' };
  for (const tool of ['session_search', 'recall', 'search']) {
    const wanted = tool === 'search' ? { ...secret, sources: ['sessions', 'memory'] } : secret;
    const answer = await asks(ANNA, `call ${tool} ${JSON.stringify(wanted)}`, /^result:/);
    expect(answer).not.toMatch(/the safe code is/);
  }
  const theirs = { conversation: `telegram:${OLGA.id}`, from: 0 };
  const read = await asks(ANNA, `call session_search ${JSON.stringify(theirs)}`, /^result:/);
  expect(read).toContain('no such conversation');
});
