// A service and a local model server beside each other, and the whole program between them and the
// people: changed to and back while turns run, watched, told of, accounted for.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { freePorts } from '../support/free-ports.ts';
import { callTools, echo, startLlmServer } from '../support/llm-server.ts';
import { localDialect, type SideRoute } from '../support/local-dialects.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OLGA = { id: 710, first_name: 'Olga' };
const ANNA = { id: 711, first_name: 'Anna' };
const MODEL = { id: 'llama3.2:3b', loadedTokens: 16_384, trainedTokens: 131_072 };

const side = localDialect('ollama', [MODEL]);
/** Everything that is asked of the local server. */
const heard: string[] = [];
const route: SideRoute = (call) => {
  heard.push(`${call.method} ${call.path}`);
  return side.route(call);
};
const loads = () => side.asked.filter((asked) => asked.startsWith('/api/generate')).length;
/** Of no connection of others: the server goes and comes back there. */
const [port = 0] = await freePorts(1);
const startLocal = () => startLlmServer({ port, respond: echo, models: [MODEL.id], side: route });

let local = await startLocal();
const sections = {
  providers: { ollama: { apiBase: local.openaiBase } },
  localModels: { probeSecs: 0.2 },
  retry: { providerAttempts: 0 },
};
const world = await startTelegramWorld({
  respond: echo,
  config: sections,
  channel: { allowFrom: [`${ANNA.id}`] },
  pair: { [OLGA.id]: 'owner' },
});
const { telegram, model: cloud, home, nanobot, hears, asks, texts: toldTo } = world;

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await local[Symbol.asyncDispose]();
});

it('asks nothing of a local server that nobody uses', async () => {
  await asks(ANNA, 'please say nonce-cloud', /nonce-cloud/);
  expect(await asks(ANNA, '/status', /Model: /)).not.toMatch(/Ollama/);
  expect(cloud.requests).toHaveLength(1);
  expect(heard).toEqual([]);
});

it('a turn under way ends on the model it began with, the next one has the new one', async () => {
  const { promise: gate, resolve: release } = Promise.withResolvers<void>();
  const more = { gate, ...callTools({ name: 'time', arguments: {} }) };
  cloud.script(more, { chunks: ['nonce-ended-in-the-cloud'] });
  telegram.say(ANNA, 'begin');
  await cloud.received(2);
  expect(await asks(ANNA, '/status', /Model: /)).toContain('1 being answered');
  expect(await asks(OLGA, '/local default llama3.2:3b', /default model/)).toContain(
    'ollama/llama3.2:3b',
  );
  release();
  await hears(ANNA.id, /nonce-ended-in-the-cloud/);
  expect(cloud.requests).toHaveLength(3);
  expect(local.requests).toHaveLength(0);
  await asks(ANNA, 'please say nonce-local', /nonce-local/);
  expect(cloud.requests).toHaveLength(3);
  expect(local.requests).toHaveLength(1);
});

it('is warmed up, knows its window, and offers a small model few tools', async () => {
  expect(side.asked).toContain('/api/generate llama3.2:3b');
  const status = await asks(OLGA, '/status', /Model: /);
  expect(status).toContain('Model: ollama/llama3.2:3b');
  expect(status).toMatch(
    /Ollama at 127\.0\.0\.1:\d+: answers, .*ollama\/llama3\.2:3b, 16384 tokens/,
  );
  expect(await asks(OLGA, '/model', /The model is/)).toContain('ollama/llama3.2:3b');
  expect(await asks(OLGA, '/context', /16,?384|16\.4|16k/i)).toBeDefined();
  const { tools = [], body } = local.requests.at(-1) ?? {};
  expect(tools).toEqual(expect.arrayContaining(['read_file', 'web_fetch', 'recall']));
  expect(tools.length).toBeLessThan(13);
  expect(cloud.requests.at(-1)?.tools.length).toBeGreaterThan(tools.length);
  expect(body?.['max_tokens']).toBe(2048);
});

it('says below the answer where a service answered in its place', async () => {
  await world.configure({
    ...sections,
    agents: { defaults: { model: 'openai/sim-1', fallbackModels: ['openai/sim-2'] } },
  });
  await world.restart();
  await local[Symbol.asyncDispose]();
  const told = await asks(ANNA, 'please say nonce-elsewhere', /nonce-elsewhere\s+\[/);
  expect(cloud.requests.at(-1)?.model).toBe('sim-2');
  expect(told).toMatch(
    /nonce-elsewhere\s+\[ollama\/llama3\.2:3b could not answer; openai\/sim-2, a service, was asked instead\.\]$/,
  );
  local = await startLocal();
  await world.configure(sections);
  await world.restart();
});

it('is the one of all after a kill too, and is warmed up again', async () => {
  await world.gateway.kill();
  side.loaded.clear();
  const before = loads();
  await world.start();
  expect(await asks(ANNA, '/status', /Model: /)).toContain('Model: ollama/llama3.2:3b');
  await asks(ANNA, 'please say nonce-awake', /nonce-awake/);
  await expect.poll(loads, { interval: 10 }).toBe(before + 1);
  expect(await asks(ANNA, '/local off', /The default model is/)).toContain('a local one');
});

it('goes back for all, and to the local one in one conversation only', async () => {
  expect(await asks(ANNA, '/local default off', /owner/)).toContain('Only my owner');
  await asks(OLGA, '/local default off', /The default model is openai\/sim-1/);
  await asks(ANNA, 'please say nonce-again', /nonce-again/);
  expect(cloud.requests.at(-1)?.lastUserText).toContain('nonce-again');
  await asks(OLGA, '/local nothing-like-it', /No local server here has the model nothing-like-it/);
  await asks(
    OLGA,
    '/local llama3.2:3b right now',
    /I do not understand "right now"\. Usage: \/local/,
  );
  await asks(OLGA, '/local default off please', /I do not understand "please"/);
  side.loaded.clear();
  const before = loads();
  await asks(OLGA, '/local', /the model is ollama\/llama3\.2:3b/);
  await expect.poll(loads, { interval: 10 }).toBe(before + 1);
  await asks(OLGA, 'please say nonce-olga', /nonce-olga/);
  expect(local.requests.at(-1)?.lastUserText).toContain('nonce-olga');
  await asks(ANNA, 'please say nonce-anna', /nonce-anna/);
  expect(cloud.requests.at(-1)?.lastUserText).toContain('nonce-anna');
});

it('tells the owner once that the server is gone, and once that it is back', async () => {
  const told = (what: RegExp) => toldTo(OLGA.id).filter((text) => what.test(text)).length;
  const gone = () => told(/Ollama at .* no longer answers/);
  const back = () => told(/Ollama at .* answers again/);
  // A look at the server while an earlier test had stopped it was told as well.
  const [goneBefore, backBefore] = [gone(), back()];
  await local[Symbol.asyncDispose]();
  await expect.poll(gone).toBe(goneBefore + 1);
  expect(await asks(OLGA, '/status', /Model: /)).toMatch(/Ollama at \S+: does not answer/);
  local = await startLocal();
  await expect.poll(back).toBe(backBefore + 1);
  expect([gone(), back()]).toEqual([goneBefore + 1, backBefore + 1]);
  expect(toldTo(ANNA.id).join(' ')).not.toMatch(/no longer answers|answers again/);
});

it('goes back with /local, and shows in the terminal what there is', async () => {
  await asks(OLGA, '/local', /the model is openai\/sim-1 again/);
  await asks(OLGA, 'please say nonce-back', /nonce-back/);
  expect(cloud.requests.at(-1)?.lastUserText).toContain('nonce-back');
  const listed = await nanobot('agent', '-m', '/local list');
  expect(listed).toMatch(/The model here is openai\/sim-1/);
  expect(listed).toMatch(/Ollama.*answers[\s\S]*ollama\/llama3\.2:3b/);
  const on = await nanobot('agent', '-m', '/local');
  expect(on).toContain('ollama/llama3.2:3b');
  const said = await nanobot('agent', '-m', 'please say nonce-term');
  expect(said).toContain('nonce-term');
  expect(local.requests.at(-1)?.lastUserText).toContain('nonce-term');
});

it('accounts for what it did: local calls cost nothing, and their wait is a figure of its own', async () => {
  expect(await asks(OLGA, '/cost', /.+/)).not.toMatch(/unknown price/i);
  const text = await readFile(join(home.path, 'metrics.jsonl'), 'utf8');
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const at = (model: string) => lines.filter((line) => line['model'] === model);
  const own = at('ollama/llama3.2:3b');
  expect(own.map(({ role }) => role)).toEqual(expect.arrayContaining(['warm_up', 'turn']));
  expect(own.every(({ waited_ms }) => typeof waited_ms === 'number')).toBe(true);
  expect(at('openai/sim-1').some((line) => 'waited_ms' in line)).toBe(false);
});
