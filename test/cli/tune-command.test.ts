// Three models on one local server, and the whole program that measures them: one that answers, one that
// guesses, one that fails.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEvalRig } from '../eval/eval-rig.ts';
import {
  callTools,
  fail,
  type LlmReply,
  type LlmRequest,
  type LlmServer,
  say,
  startLlmServer,
} from '../support/llm-server.ts';
import { localDialect } from '../support/local-dialects.ts';
import { runNanobot, type TemporaryHome, temporaryHome } from './run-nanobot.ts';

const GOOD = 'qwen3:8b';
const GUESSES = 'qwen3:0.6b';
const BROKEN = 'qwen3:4b';
const MODELS = [GUESSES, GOOD, BROKEN].map((id) => ({
  id,
  loadedTokens: 8192,
  trainedTokens: 40_960,
}));

const ANSWERS: readonly (readonly [question: RegExp, answer: string])[] = [
  [/code word/, 'heron-41'],
  [/17 \+ 26/, '43'],
  [/9 times 8/, '72'],
  [/train leaves/, '15:25'],
  [/Tom is taller/, 'Jo'],
  [/three words/, 'red, blue, green'],
  [/JSON object/, '{"city": "Lisbon"}'],
  [/meeting was moved/, '12'],
  [/into German/, 'Haus'],
];

const CALLS: readonly (readonly [task: RegExp, name: string, given: object])[] = [
  [/Oslo/, 'get_weather', { city: 'Oslo' }],
  [/Lima/, 'get_weather', { city: 'Lima' }],
  [/timer/, 'set_timer', { minutes: 12, label: 'tea' }],
  [/today\.md/, 'read_file', { path: 'notes/today.md' }],
];

function answer({ model, lastUserText: text, tools }: LlmRequest): LlmReply {
  if (model === BROKEN) return fail(500);
  if (model === GUESSES) return say('Forty-two, as always.');
  const called = tools.length === 0 ? undefined : CALLS.find(([task]) => task.test(text));
  if (called !== undefined) return callTools({ name: called[1], arguments: { ...called[2] } });
  return say(ANSWERS.find(([question]) => question.test(text))?.[1] ?? 'The harbour wakes slowly.');
}

const written = async ({ path }: Pick<TemporaryHome, 'path'>) =>
  JSON.parse(await readFile(join(path, 'config.json'), 'utf8'));

let server: LlmServer;
let home: TemporaryHome;

beforeAll(async () => {
  const side = localDialect('ollama', MODELS);
  const names = MODELS.map(({ id }) => id);
  server = await startLlmServer({ respond: answer, models: names, side: side.route });
  home = await temporaryHome();
  await home.writeConfig({
    agents: { defaults: { fallbackModels: [`ollama/${GOOD}`] } },
    providers: { ollama: { apiBase: server.openaiBase } },
  });
});

afterAll(async () => {
  await home[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

describe('nanobot tune', () => {
  it('measures what the server has, names the model that does the work and why not the others', async () => {
    const run = await runNanobot(['tune', '--json', '--apply'], { home: home.path });
    expect(run.code, run.stderr).toBe(0);
    const { best, measured, rejected } = JSON.parse(run.stdout);
    expect(best).toBe(`ollama/${GOOD}`);
    expect(measured).toContainEqual(
      expect.objectContaining({
        ...{ model: `ollama/${GOOD}`, contextTokens: 8192 },
        ...{ quality: 1, toolSuccess: 1, overflowRate: 0 },
      }),
    );
    expect(rejected).toEqual([
      {
        model: `ollama/${GUESSES}`,
        reasons: expect.arrayContaining(['correct answers 0 %, minimum 50 %']),
      },
      { model: `ollama/${BROKEN}`, reasons: [expect.stringContaining('failed:')] },
    ]);
    expect(await written(home)).toMatchObject({ localModels: { model: `ollama/${GOOD}` } });
    const again = join(home.path, 'figures.json');
    await writeFile(again, run.stdout);
    const known = server.requests.length;
    const read = await runNanobot(['tune', '--from', again], { home: home.path });
    expect(read.stdout).toContain(`best: ollama/${GOOD}`);
    expect(server.requests).toHaveLength(known);
  });

  it('keeps by Ctrl+C what it has measured, and chooses nothing', async () => {
    await using rig = await createEvalRig();
    rig.server.respond((request) => {
      if (request.model === 'second') process.emit('SIGINT');
      return answer(request);
    });
    const models = ['--model', 'openai/first', 'openai/second'];
    const run = await rig.cli('tune', '--json', '--apply', ...models);
    expect([run.code, run.stderr]).toEqual([130, expect.stringContaining('stopped')]);
    expect(JSON.parse(run.stdout).measured).toMatchObject([{ model: 'openai/first', quality: 1 }]);
    expect(await written({ path: rig.home.root })).not.toHaveProperty('localModels');
  });

  it('says what is wrong with a file that holds no figures', async () => {
    const path = join(home.path, 'wrong.json');
    await writeFile(path, '{"version":1,"measured":[{"model":"a","quality":9}]}');
    const run = await runNanobot(['tune', '--from', path], { home: home.path });
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('measured.0');
    expect(run.stderr).toContain('nanobot tune --json');
  });
});
