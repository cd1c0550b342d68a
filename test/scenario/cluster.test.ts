// A service, a local model server, a configured peer, a host that was only found and one that redirects,
// and the whole program between them and the people: who sees which conversation, and who never does.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import {
  callTools,
  echo,
  fail,
  type LlmRequest,
  type LlmServer,
  startLlmServer,
} from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OLGA = { id: 720, first_name: 'Olga' };
const ANNA = { id: 721, first_name: 'Anna' };

const foundModels = ['tiny'];
const heard: string[] = [];

/** Does what the person says: `help: <words>` starts a helper. */
function obeys(request: LlmRequest) {
  const { lastUserText: text, toolResults } = request;
  const task = /help: (\S+)/.exec(text)?.[1];
  if (task === undefined || toolResults.length > 0) return echo(request);
  return callTools({ name: 'spawn', arguments: { action: 'spawn', task: `please say ${task}` } });
}

const placeOf = ({ url }: LlmServer) => new URL(url).host;
const peerOf = (server: LlmServer, model: string) =>
  `peer:${placeOf(server).replace(':', '-')}/${model}`;
const sawCloud = (words: string) =>
  cloud.requests.some(({ body }) => JSON.stringify(body).includes(words));

const local = await startLlmServer({ respond: echo, models: ['shared:8b'] });
const studio = await startLlmServer({
  ...{ apiKey: 'sk-studio-77aa', models: ['shared:8b', 'big'], respond: obeys },
});
const found = await startLlmServer({
  ...{ models: foundModels, respond: echo },
  side({ method, path }) {
    heard.push(`${method} ${path}`);
    return undefined;
  },
});
const redirects = await startLlmServer({
  side: () => ({ status: 307, body: {}, headers: { location: `${found.url}/v1/models` } }),
});
const studioPeer = { apiBase: studio.openaiBase, apiKey: 'sk-studio-77aa' };
const sections = {
  version: 1 as const,
  agents: {
    defaults: { model: 'openai/sim-1', fallbackModels: ['openai/sim-2'] },
    subagents: { model: 'openai/sim-1' },
  },
  providers: { ollama: { apiBase: local.openaiBase } },
  cluster: {
    enabled: true,
    peers: { studio: studioPeer },
    discovery: { enabled: true, addresses: [placeOf(found), placeOf(redirects)], ports: [9] },
  },
  retry: { providerAttempts: 0 },
};
const world = await startTelegramWorld({
  respond: obeys,
  config: sections,
  channel: { allowFrom: [`${ANNA.id}`] },
  pair: { [OLGA.id]: 'owner' },
});
const { model: cloud, home, hears, asks } = world;

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  for (const each of [local, studio, found, redirects]) await each[Symbol.asyncDispose]();
});

it('a peer answers by its name, or where it has exactly the model of a local server', async () => {
  await asks(ANNA, '/model peer:studio/big', /the model is peer:studio\/big/);
  await asks(ANNA, 'please say nonce-studio', /nonce-studio/);
  expect(studio.requests.at(-1)?.model).toBe('big');
  await asks(ANNA, '/model ollama/shared:8b', /the model is peer:studio\/shared:8b/);
  await asks(ANNA, 'please say nonce-shared', /nonce-shared/);
  expect(studio.requests.at(-1)?.model).toBe('shared:8b');
  expect(local.requests).toHaveLength(0);
  expect(cloud.requests).toHaveLength(0);
  const status = await asks(ANNA, '/status', /Model: /);
  expect(status).toMatch(/Peer studio at \S+: answers; shared:8b, big/);
  expect(status).toMatch(/the peer studio at 127\.0\.0\.1:\d+: .*2 calls so far/);
  expect(await asks(ANNA, '/cost', /.+/)).not.toMatch(/unknown price/i);
});

it('a host that was found is listed to the owner and asked for its models only', async () => {
  await expect.poll(() => heard, { interval: 10 }).toContain('GET /v1/models');
  const listed = async () => asks(OLGA, '/cluster', /Peer studio/);
  await expect.poll(listed, { interval: 20 }).toContain(`Host ${placeOf(found)}: found`);
  expect(await listed()).not.toContain(placeOf(redirects));
  await asks(ANNA, `/model ${peerOf(found, 'tiny')}`, /There is no usable peer/);
  await asks(ANNA, `/cluster confirm ${placeOf(found)}`, /owner|not/i);
  await asks(ANNA, `/model ${peerOf(found, 'tiny')}`, /There is no usable peer/);
  expect(new Set(heard)).toEqual(new Set(['GET /v1/models']));
  expect(await asks(OLGA, '/cluster confirm 10.0.0.1:1', /No host/)).toContain('10.0.0.1:1');
  await asks(OLGA, `/cluster confirm ${placeOf(found)}`, /Confirmed/);
  await asks(OLGA, `/model ${peerOf(found, 'tiny')}`, /the model is peer:127/);
  await asks(OLGA, 'please say nonce-found', /nonce-found/);
  expect(found.requests.at(-1)?.headers['authorization']).not.toMatch(/sk-/);
});

it('a confirmed host that changes gets nothing more, the owner is told, and it stays so over a kill', async () => {
  const before = found.requests.length;
  foundModels.push('newer');
  // Instead of it a fallback answers, as of any model.
  await asks(OLGA, 'please say nonce-changed', /nonce-changed/);
  await hears(OLGA.id, /has changed since it was confirmed/);
  await world.restart();
  expect(await asks(OLGA, '/cluster list', /Peer studio/)).toMatch(
    /no longer confirmed.*tiny, newer/,
  );
  await asks(OLGA, 'please say nonce-after', /There is no usable peer/);
  expect(found.requests).toHaveLength(before);
  const run = (...args: string[]) => world.nanobot('cluster', ...args);
  const seen = /Peer studio at \S+ (?:answers|does not answer); .*/;
  const inChat = seen.exec(await asks(OLGA, '/cluster list', seen))?.[0] ?? '';
  expect(inChat).toContain('shared:8b');
  expect(await run('list')).toContain(inChat);
  expect(await run('confirm', placeOf(found))).toContain('Confirmed');
  expect(await run('list')).toContain(`Host ${placeOf(found)}: confirmed`);
  await asks(OLGA, '/cluster list', /: confirmed/);
  expect(await run('forget', placeOf(found))).toContain('Forgotten');
  await asks(OLGA, 'please say nonce-forgotten', /There is no usable peer|nonce-forgotten/);
  expect(found.requests).toHaveLength(before);
  await asks(OLGA, '/model default', /openai\/sim-1 again/);
});

it('where a peer dies in the midst of its answer, it is as with any other, and only a configured fallback goes on', async () => {
  await asks(ANNA, '/model peer:studio/big', /the model is/);
  const asked = cloud.requests.length;
  studio.script({ fault: { kind: 'drop' }, chunks: ['half an answer'] });
  await asks(ANNA, 'please say nonce-dies', /half an answer[\s\S]*\S|not answer|broke/);
  expect(cloud.requests).toHaveLength(asked);
  studio.script({ fault: { kind: 'drop' } });
  await asks(ANNA, 'please say nonce-instead', /nonce-instead/);
  expect(cloud.requests.at(-1)?.model).toBe('sim-2');
});

it('a conversation that stays on your own machines reaches no service, by no way', async () => {
  const told = await asks(ANNA, '/local only', /own machines/);
  expect(told).toContain('The model is peer:studio/big');
  studio.script(fail(503));
  await asks(ANNA, 'secret-fallback', /No model was asked: openai\/sim-2 .*\/local only/);
  await asks(ANNA, '/model openai/sim-1', /No model was asked: openai\/sim-1/);
  await asks(ANNA, 'now help: secret-helper', /./);
  const isTold = () =>
    studio.requests.some(({ body }) =>
      JSON.stringify(body).includes('No model was asked: openai/sim-1'),
    );
  await expect.poll(isTold, { timeout: 45_000, interval: 20 }).toBe(true);
  await world.restart();
  expect(await asks(ANNA, '/status', /Model: /)).toContain('Only models on your own machines');
  studio.script(fail(503));
  await asks(ANNA, 'secret-after-kill', /No model was asked/);
  await asks(ANNA, 'please say nonce-athome', /nonce-athome/);
  await asks(OLGA, 'please say nonce-other', /nonce-other/);
  expect(sawCloud('nonce-other')).toBe(true);
  expect(sawCloud('secret-')).toBe(false);
  await asks(ANNA, '/local off', /Any model may be used here again/);
  await asks(ANNA, '/model default', /openai\/sim-1/);
  await asks(ANNA, 'please say nonce-freed', /nonce-freed/);
  expect(sawCloud('nonce-freed')).toBe(true);
});

it('refuses what is paid for by such a conversation with the model of all, too', async () => {
  await asks(ANNA, '/local only', /is no longer used/);
  await asks(ANNA, 'secret-default', /No model was asked: openai\/sim-1/);
  await asks(ANNA, '/compact', /./);
  expect(sawCloud('secret-default')).toBe(false);
  const logs = await home.logs();
  expect(logs).not.toMatch(/sk-studio-77aa|secret-default/);
  const lines = (await readFile(join(home.path, 'metrics.jsonl'), 'utf8')).trim().split('\n');
  const models = lines.map((line) => (JSON.parse(line) as { model?: string }).model);
  expect(models).toContain('peer:studio/big');
});

it('a change of the configuration counts at once: peers come and go, and no answer under way is cut', async () => {
  const { pid } = world.gateway;
  const change = async (cluster: object) => {
    const lines = world.gateway.output().length;
    await world.configure({ ...sections, cluster });
    const since = () => world.gateway.output().slice(lines);
    await expect.poll(since, { timeout: 30_000 }).toContain('configuration is in force');
    expect(since()).not.toContain('Start the gateway again');
  };
  await asks(OLGA, '/model peer:studio/big', /the model is peer:studio\/big/);
  const held = Promise.withResolvers<void>();
  studio.script({ chunks: ['nonce-under', 'way'], gate: held.promise });
  const answered = asks(OLGA, 'hold this', /nonce-under ?way/);
  await expect.poll(() => studio.requests.at(-1)?.lastUserText).toContain('hold this');
  const den = { apiBase: local.openaiBase };
  await change({ enabled: true, prefer: 'local', peers: { den } });
  held.resolve();
  await answered;
  await asks(OLGA, 'secret-gone', /There is no usable peer|secret-gone/);
  expect(studio.requests.at(-1)?.lastUserText).toContain('hold this');
  await asks(OLGA, '/model peer:den/shared:8b', /the model is peer:den\/shared:8b/);
  await asks(OLGA, 'please say nonce-den', /nonce-den/);
  expect(local.requests.at(-1)?.lastUserText).toContain('nonce-den');
  const peersSeen = await asks(OLGA, '/cluster', /Peer den/);
  expect(peersSeen).not.toContain('Peer studio');

  await change({ enabled: false, peers: { den } });
  const calls = local.requests.length;
  await asks(OLGA, '/cluster', /^Peers are switched off/);
  await asks(OLGA, 'please say nonce-off', /There is no usable peer|nonce-off/);
  expect(local.requests).toHaveLength(calls);
  expect(await asks(OLGA, '/status', /Model: /)).not.toContain('Peer ');

  heard.length = 0;
  await change(sections.cluster);
  await asks(OLGA, '/model peer:studio/big', /the model is peer:studio\/big/);
  await asks(OLGA, 'please say nonce-again', /nonce-again/);
  expect(studio.requests.at(-1)?.lastUserText).toContain('nonce-again');
  await expect.poll(() => heard, { timeout: 30_000 }).toContain('GET /v1/models');
  expect(world.gateway.pid).toBe(pid);
});
