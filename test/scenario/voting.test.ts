// Votes on steps and limits by experience, through the whole program, with the model of a judge on a
// server of its own: voters side by side, a gate, a tie
// that is told, no voter asked twice over a kill, and limits of helpers that fall and rise again.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import {
  callTools,
  type LlmReply,
  type LlmRequest,
  say,
  startLlmServer,
} from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const PERSON = 950;
const TASK = '\\n[Task for a subagent';
const END = '[A subagent you started has ended';
const SUM = 'Judge this:';

const CAPABILITY = `
description: Judges.
model: deepseek/judge-1
prompt: "${SUM} {{ input.what }}"
output: { type: object, required: [good], properties: { good: { type: string } } }
`;
const WORKFLOW = `
description: Judges by votes.
inputs: { what: { type: string } }
steps: [{ id: verdict, kind: llm_skill, capability: judge, votes: 2 }]
result: "VERDICT {{ verdict.good }}"
`;

const gate = Promise.withResolvers<void>();
const hanging = Promise.withResolvers<void>();

const asked = (words: string) =>
  model.requests.filter(({ lastUserText }) => lastUserText.includes(words));

function reply({ lastUserText: text, toolResults, body }: LlmRequest): LlmReply {
  if (text.includes(END)) return say(`Told: ${/(RESULT|Step|not deep)[^\n]*/.exec(text)?.[0]}`);
  const all = JSON.stringify(body['messages']);
  if (all.includes(TASK)) return helper(all, body);
  if (toolResults.length > 0) return say(toolResults.at(-1)?.text ?? '');
  const [, json = '{}'] = /CALL (\{.*\})/.exec(text) ?? [];
  return callTools({ name: 'spawn', arguments: JSON.parse(json) });
}

/** The second voter does not answer before the kill; whoever comes after it says the same as the first. */
function judge({ lastUserText: text }: LlmRequest): LlmReply {
  if (text.includes('split')) return say(`{"good": "${judged('split').length}"}`);
  const nth = judged(`${SUM} cake`).length;
  if (nth === 2) return { ...say('{"good": "no"}'), gate: hanging.promise };
  return say(nth === 1 ? '{"good": "Yes."}' : '```json\n{"good": "yes"}\n```');
}

function helper(text: string, { tool_choice: choice }: LlmRequest['body']): LlmReply {
  const results = text.split('"role":"tool"').length - 1;
  if (text.includes(':\\nDO colour')) {
    const nth = asked(':\nDO colour').length;
    return { ...say(nth === 1 ? '**Blue**' : 'blue.'), gate: gate.promise };
  }
  if (text.includes(':\\nDO quarrel'))
    return say(['red', 'green', 'grey'][asked(':\nDO quarrel').length - 1] ?? 'RESULT-peace');
  const rounds = Number(/DO dig (\d+)/.exec(text)?.[1] ?? 0);
  if (results < rounds && choice !== 'none') {
    return callTools({ name: 'read_file', arguments: { path: `hole-${results}.md` } });
  }
  return say(rounds > 0 && results < rounds ? 'not deep enough' : `RESULT-${rounds}`);
}

const judges = await startLlmServer({ respond: judge, models: ['judge-1'] });
const judged = (words: string) =>
  judges.requests.filter(({ lastUserText }) => lastUserText.includes(words));

const world = await startTelegramWorld({
  respond: reply,
  config: {
    providers: { deepseek: { apiKey: 'sk-of-the-judge', apiBase: judges.openaiBase } },
    agents: {
      defaults: { model: 'openai/sim-1', maxTokens: 500 },
      workflows: { enabled: true },
      voting: { gate: true },
      calibration: { enabled: true },
    },
  },
  channel: { streaming: false, allowFrom: [`${PERSON}`] },
  files: { 'capabilities/judge.yaml': CAPABILITY, 'workflows/judge.yaml': WORKFLOW },
});
const { telegram, model, home } = world;
afterAll(async () => {
  gate.resolve();
  hanging.resolve();
  await world[Symbol.asyncDispose]();
  await judges[Symbol.asyncDispose]();
});

const texts = () => world.texts(PERSON);
const answerTo = (words: string, like: RegExp) => world.asks(PERSON, words, like);
const spawn = (task: string, like: RegExp) =>
  answerTo(`CALL ${JSON.stringify({ action: 'spawn', task })}`, like);
const pipeline = (...steps: readonly object[]) =>
  `CALL ${JSON.stringify({ action: 'pipeline', steps, id: JSON.stringify(steps).slice(0, 60) })}`;

it('asks pilot voters side by side, without tools, takes what they agree on, and tells a tie as one', async () => {
  telegram.say(PERSON, pipeline({ prompt: 'DO colour', ahead_by: 3 }, { prompt: 'DO dig 0' }));
  // Neither is answered before both are asked.
  while (asked(':\nDO colour').length < 2) await model.received(model.requests.length + 1);
  gate.resolve();
  await telegram.waitFor(() => texts().find((text) => text === 'Told: RESULT-0'));
  expect(asked('Your step, 1 of 2').map(({ tools }) => tools)).toEqual([[], []]);
  expect(asked('Your step, 2 of 2')[0]?.lastUserText).toMatch(/Result of step 1:\n\W*blue/i);

  const quarrel = pipeline({ prompt: 'DO quarrel', ahead_by: 1 });
  await answerTo(
    quarrel,
    /^Told: Step 1: undecided, a tie after 3 votes: 1 × "red", 1 × "green", 1 × "grey"/,
  );
  await answerTo('/agents', /\(pipeline\): undecided after/);
  // The same again is that vote anew.
  await answerTo(quarrel, /^Told: RESULT-peace$/);
  await answerTo(
    '/status',
    /Votes on steps: 3 \(2 accepted by the pilot voters, 0 won by a lead, 1 undecided\); 2\.3 answers each/,
  );
  const metrics = () => readFile(join(home.path, 'metrics.jsonl'), 'utf8');
  await expect.poll(async () => (await metrics()).match(/"role":"vote"/g)).toHaveLength(7);
});

it('asks no voter of a workflow again whose answer was there before a kill', async () => {
  const started = await answerTo('/workflow run judge what=cake', /^Started: w\w+ judge/);
  const id = /w\w{10}/.exec(started)?.[0] ?? '';
  // A person may send 60 commands a minute.
  await expect
    .poll(() => answerTo(`/workflow show ${id}`, /verdict/), { interval: 1000 })
    .toContain('"voter": 1');
  expect(judged(`${SUM} cake`)).toHaveLength(2);
  await world.restart();
  await telegram.waitFor(() => texts().find((text) => /VERDICT Yes\.$/.test(text)));
  expect(judged(`${SUM} cake`)).toHaveLength(3);

  await answerTo(
    '/workflow run judge what=split',
    /failed: the step verdict failed: undecided, a tie after \d votes/,
  );
  expect(asked(SUM)).toEqual([]);
});

it('gives helpers the limits that helpers like them needed, and more again to one that needs it', async () => {
  for (const name of ['a', 'b', 'c', 'd']) await spawn(`DO dig 0 ${name}`, /^Told: RESULT-0$/);
  await answerTo(
    '/status',
    /Calibration of task, openai\/sim-1: 4 runs \(answer\), 4 done; at most 3 rounds and 90000 tokens, depth 1, confidence 0\.50/,
  );
  await spawn('DO dig 5', /^Told: not deep enough$/);
  await spawn('DO dig 5 again', /^Told: RESULT-5$/);
  const lines = await answerTo('/agents', /DO dig 5 again/);
  expect(lines).toMatch(/DO dig 5 again \(task, 6 rounds by experience\): done/);
  expect(lines).toMatch(/DO dig 5 \(task, 3 rounds by experience\): done/);
});
