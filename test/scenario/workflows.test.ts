// Workflows through the whole program: started from chat, by the model and by a job, held to the rights of
// who started them, asked for where an owner has to allow something, and taken up after a kill. The model
// of a capability is on another server than that of the conversation.

import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { followEvents } from '../http/http-rig.ts';
import { type LlmReply, type LlmRequest, startLlmServer } from '../support/llm-server.ts';
import { laterBy } from '../support/shifted-clock.ts';
import { MODEL_KEY, startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 800;
const FRIEND = 801;
const SUM = 'Sum this up:';

let answer: (request: LlmRequest) => LlmReply;

const SUMMED = { chunks: ['```json\n{"points":["milk","eggs"],"good":true}\n```'] };

const CAPABILITY = `
description: Sums up.
model: groq/sums-1
prompt: "${SUM} {{ text }}"
output:
  type: object
  required: [points, good]
  properties: { points: { type: array, items: { type: string } }, good: { type: boolean } }
`;
const NOTE = `
description: Sums a file up.
inputs:
  file: { type: string, description: what to read }
  to: { type: string, default: out.md }
steps:
  - { id: text, kind: tool, tool: read_file, arguments: { path: "{{ input.file }}" } }
  - { id: sum, kind: llm_skill, capability: sum, with: { text: "{{ text.text }}" }, say: "Summing up {{ input.file }}" }
  - id: written
    kind: tool
    tool: write_file
    when: { equals: { path: sum.good, value: true } }
    arguments: { path: "{{ input.to }}", content: "List:\\n{{ sum.points }}" }
complete: { present: written.text }
result: "FIRST\\n\\n{{ sum.points }}"
`;
/** Asks twice, a model whose price nobody knows. */
const PRICED = (money: number) => `
description: Sums up twice.
limits: { money: ${money} }
steps:
  - { id: one, kind: llm_skill, capability: sum, with: { text: "milk" } }
  - { id: two, kind: llm_skill, capability: sum, with: { text: "eggs" } }
result: "twice {{ two.points }}"
`;
const RUNS = `
description: Runs a program.
inputs: { name: { type: string } }
steps:
  - { id: made, kind: tool, tool: exec, arguments: { argv: [touch, "{{ input.name }}"] } }
result: "made {{ input.name }}"
`;

const summer = await startLlmServer({
  respond: (request) => answer(request),
  models: ['sums-1'],
});
const sections = {
  providers: { groq: { apiKey: MODEL_KEY, apiBase: summer.openaiBase } },
  agents: { defaults: { model: 'openai/sim-1', maxTokens: 500 }, workflows: { enabled: true } },
  tools: { approvals: { owner: 'strict' as const } },
};
const world = await startTelegramWorld({
  respond: (request) => answer(request),
  config: { ...sections, limits: { budget: { unpriced: 'refuse' } } },
  env: laterBy(0),
  channel: { streaming: false, allowFrom: [`${FRIEND}`] },
  files: {
    'capabilities/sum.yaml': CAPABILITY,
    'workflows/note.yaml': NOTE,
    'workflows/runs.yaml': RUNS,
    'workflows/cheap.yaml': PRICED(0.000_01),
    'workflows/rich.yaml': PRICED(10),
    'workflows/broken.yaml': NOTE.replace('say:', 'tell:'),
    'in.md': `Buy milk. Buy eggs. ${MODEL_KEY}`,
  },
  pair: { [OWNER]: 'owner' },
});
const { telegram, home, texts, file, nanobot } = world;
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await summer[Symbol.asyncDispose]();
});

const sums = () => summer.requests.filter(({ lastUserText }) => lastUserText.includes(SUM));

const sayings = () => texts(OWNER).filter((text) => text === 'Summing up in.md');

const answerTo = (words: string, like: RegExp, chat = OWNER) => world.asks(chat, words, like);
const hears = (like: RegExp, chat = OWNER) => world.hears(chat, like);

it('runs step by step from chat, tells how far it is and what came of it, and says what is wrong with a file', async () => {
  answer = () => (summer.requests.length === 1 ? { chunks: ['Here you are: milk'] } : SUMMED);
  const listed = await answerTo('/workflow', /note: Sums a file up\. \(inputs: file, \[to\]\)/);
  expect(listed).toMatch(
    /broken cannot be used: workflows\/broken.yaml: steps\.2\.tell: unknown field/,
  );
  await answerTo('/workflow run note', /The input "file" is missing \(what to read\)/);
  await answerTo('/workflow run note file=in.md', /^Started: (w\w+) note: running/);
  await hears(/^Summing up in\.md$/);
  await hears(/^note\s+FIRST\s+• milk\s+• eggs$/);
  expect(await readFile(file('out.md'), 'utf8')).toBe('List:\n- milk\n- eggs');
  // The answer that was no JSON was asked for again with what was wrong.
  expect(summer.requests.at(-1)?.lastUserText).toMatch(/cannot be used: there is no JSON object/);
  expect(summer.requests[0]?.lastUserText).toMatch(
    /Sum this up: \[untrusted [0-9a-f]{16}: value of text\]\n> Buy milk/,
  );
  const id = /(w\w{10}) note: done/.exec(await answerTo('/workflow runs', /note: done/))?.[1] ?? '';
  const shown = await answerTo(`/workflow show ${id}`, /"status": "done"/);
  expect(shown).toMatch(/Buy milk\. Buy eggs\. \[redacted\]/);
  expect(await nanobot('workflows', 'runs')).toMatch(/\[\S.* \(telegram:\d+\)\]$/m);
  expect(JSON.parse(await nanobot('workflows', 'show', id))).toMatchObject({
    status: 'done',
    state: {
      number: 3,
      values: { sum: { points: ['milk', 'eggs'], good: true } },
      // Nobody knows who wrote the file, and the model says it in other words only.
      foreign: ['text', 'sum'],
    },
  });
  await answerTo('/workflow runs', /There are no runs/, FRIEND);
  await answerTo(`/workflow show ${id}`, /There is no run "w\w+" of yours/, FRIEND);
});

it('goes on at the step under way after a kill, by the definition it began with, and asks an owner by itself', async () => {
  const gate = Promise.withResolvers<void>();
  answer = () => ({ ...SUMMED, gate: gate.promise });
  const before = sums().length;
  telegram.say(OWNER, '/workflow run note file=in.md to=late.md');
  await summer.received(summer.requests.length + 1);
  await telegram.waitFor(() => sayings()[1]);
  await world.gateway.kill();
  await writeFile(file('workflows/note.yaml'), NOTE.replace('FIRST', 'SECOND'));
  gate.resolve();
  await world.start();
  await telegram.waitFor(() => texts(OWNER).filter((text) => /^note\s+FIRST/.test(text))[1]);
  expect(await readFile(file('late.md'), 'utf8')).toBe('List:\n- milk\n- eggs');
  expect(sums().length - before).toBe(2);
  expect(sayings()).toHaveLength(2);

  await answerTo('/workflow run runs name=yes.txt', /touch .*Asked by a workflow/s);
  await answerTo('/workflow runs', /runs: waits for an approval at made/);
  telegram.press(OWNER, OWNER, 'Allow once');
  await hears(/^runs\s+made yes\.txt$/);
  expect(await readFile(file('yes.txt'), 'utf8')).toBe('');
  await answerTo('/workflow run runs name=no.txt', /no\.txt.*Asked by a workflow/s);
  telegram.press(OWNER, OWNER, 'Deny');
  await hears(/The workflow runs \(w\w+\) failed: the step made failed: an owner denied/);
});

it('is started by the model and by a job, and may no more than who started it', async () => {
  answer = ({ lastUserText, toolResults }) => {
    if (lastUserText.includes(SUM)) return SUMMED;
    if (toolResults.length > 0) return { chunks: [toolResults.at(-1)?.text ?? ''] };
    const input = { file: 'in.md', to: 'model.md' };
    return {
      toolCalls: [{ name: 'workflow', arguments: { action: 'start', name: 'note', input } }],
    };
  };
  await answerTo('sum it up', /^Started: w\w+ note/, FRIEND);
  const failed =
    /note \(w\w+\) failed: the step written failed: the person who started it may not use this tool\.$/;
  await hears(failed, FRIEND);
  await answerTo('sum it up', /^Started: w\w+ note/);
  await hears(/^note\s+SECOND/);
  const names =
    /^There is no workflow "nothing"; there is broken, cheap, check-text, inbox-note, meeting-minutes, note, research/;
  await answerTo('/cron add workflow in 1s: nothing', names);
  await answerTo('/cron add workflow in 1s: note to=x.md', /^The input "file" is missing/);
  await writeFile(
    file('workflows/gone.yaml'),
    RUNS.replace('{ name: { type: string } }', '{}').replaceAll('{{ input.name }}', 'gone'),
  );
  await answerTo('/cron add workflow in 2s: gone', /^Created: j\w+/);
  await rm(file('workflows/gone.yaml'));
  await answerTo('/cron add workflow in 1s: note file=in.md to=job.md', /^Created: j\w+/);
  await hears(/^note file in\.md[\s\S]*SECOND/);
  await hears(
    /^gone\s+Failed: There is no workflow "gone"; there is broken, cheap, check-text, inbox-note, meeting-minutes/,
  );
  expect(await readFile(file('job.md'), 'utf8')).toBe('List:\n- milk\n- eggs');
  const metrics = await readFile(join(home.path, 'metrics.jsonl'), 'utf8');
  expect(metrics).toMatch(/"role":"workflow"/);
});

it('goes on after /stop, which names it and what ends it, as a job’s run; /stop all ends everything', async () => {
  const held = Promise.withResolvers<void>();
  answer = () => ({ chunks: ['late'], gate: held.promise });
  // What is not confirmed yet is stopped too.
  const confirmed = () => world.hasNo('outbound');
  await confirmed();
  await answerTo('/stop', /^Nothing is running\.$/);
  await answerTo('/workflow run runs name=held.txt', /held\.txt.*Asked by a workflow/s);
  const made = await answerTo('/cron add in 5h: HOLD this', /^Created: j\w+/);
  const job = /j\w+/.exec(made)?.[0] ?? '';
  await answerTo(`/cron run ${job}`, /^Started now/);
  const isHeld = () =>
    world.model.requests.some(({ lastUserText }) => lastUserText.includes('HOLD this'));
  await expect.poll(isHeld, { timeout: 30_000 }).toBe(true);
  await confirmed();
  const left = await answerTo('/stop', /^No answer is running\.\nStill running:/);
  expect(left).toMatch(/the workflow runs \((w\w+)\): \/workflow cancel \1\n/);
  expect(left).toContain(`HOLD this (${job}): /cron stop ${job}\n`);
  expect(left).toMatch(/\/stop all stops these too\.$/);
  await answerTo(`/cron stop ${job}`, /^Run stopped: j\w+ HOLD this/);
  await answerTo(`/cron stop ${job}`, /^The job is not running: /);
  await confirmed();
  await answerTo('/stop all', /^Stopped\. 1 workflow stopped\.$/);
  await hears(/The workflow runs \(w\w+\) was stopped by a person/);
  await hears(/What asked for it was stopped meanwhile; nothing is done\.$/);
  held.resolve();

  const { address, credentials } = world.gateway;
  const post = (path: string, body: object) =>
    fetch(`${address}/api/web/chats/w/${path}`, {
      method: 'POST',
      headers: { ...credentials, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const says = (like: RegExp) =>
    followEvents(
      address,
      '/api/web/chats/w/events',
      (events) => events.some(({ data }) => like.test(JSON.stringify(data))),
      credentials,
    );
  await post('messages', { clientId: 'c1', text: '/workflow run runs name=page.txt' });
  await says(/Asked by a workflow/);
  await post('stop', {});
  await says(/Still running:.*\/workflow cancel w/);
});

it('holds its limit in money for a model without a price: it is not asked, or charged what is configured', async () => {
  answer = () => SUMMED;
  const before = sums().length;
  const asked = () => sums().length - before;
  await answerTo(
    '/workflow run rich',
    /failed: I cannot use groq\/sums-1: I do not know its price/,
  );
  expect(asked()).toBe(0);
  const lines = world.gateway.output().length;
  await world.configure(sections);
  const applied = () => world.gateway.output().slice(lines).includes('configuration is in force');
  await expect.poll(applied, { timeout: 30_000 }).toBe(true);
  await answerTo('/workflow run cheap', /failed: its limit of 0\.00001 is used up/);
  expect(asked()).toBe(1);
  // What has to be asked for again costs as well.
  answer = () => ({ chunks: ['no JSON'] });
  await answerTo('/workflow run cheap', /failed: .*its limit of money is used up/);
  expect(asked()).toBe(2);
  answer = () => SUMMED;
  await answerTo('/workflow run rich', /^rich\s+twice - milk\s+• eggs$/);
  expect(asked()).toBe(4);
});

it('waits while workflows are off, says so, lets texts be erased, and goes on when they are on again', async () => {
  const held = Promise.withResolvers<void>();
  answer = () => ({ chunks: ['late'], gate: held.promise });
  const listed = await answerTo('/workflow runs', /rich: done/);
  const rich = /(w\w{10}) rich: done/.exec(listed)?.[1] ?? '';
  const asked = summer.requests.length;
  await answerTo('/workflow run note file=in.md to=off.md', /^Started: w\w+ note/);
  await summer.received(asked + 1);
  await world.gateway.kill();
  const { agents } = sections;
  await world.configure({ ...sections, agents: { ...agents, workflows: { enabled: false } } });
  held.resolve();
  answer = () => SUMMED;
  await world.start();
  await answerTo('/workflow runs', /^Workflows are switched off \(agents\.workflows\.enabled\)\.$/);
  await answerTo('/cron add workflow in 1h: note file=in.md', /Workflows are switched off/);
  await answerTo('/forget twice', /twice/);
  telegram.press(OWNER, OWNER, 'Forget');
  await hears(/Forgotten: /);
  expect(summer.requests).toHaveLength(asked + 1);
  await world.configure(sections);
  await world.restart();
  await answerTo(`/workflow show ${rich}`, /There is no run "w\w+" of yours/);
  await world.gateway.skipUntil(() => existsSync(file('off.md')));
  await answerTo('/workflow runs', /note: done/);
});
