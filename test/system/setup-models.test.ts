// Connecting a model over the HTTP API of the real program: what is offered, the proof before anything is
// saved, the answer without a restart, and keys that no response shows.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  connectedModel,
  listedModels,
  modelChoices,
} from '../../src/features/setup/rules/views.ts';
import { type ApiCall, callApi } from '../support/console-page.ts';
import { freePorts } from '../support/free-ports.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { type LlmServer, say, startLlmServer } from '../support/llm-server.ts';

const KEY = 'sk-right-key-of-this-test-1';
const WRONG = 'sk-wrong-key-of-this-test-2';
/** Of a variable of the environment. */
const FIXED = 'http://127.0.0.1:9';
const MODELS = '/api/v1/setup/models';

describe('a model connected over HTTP', () => {
  let server: LlmServer;
  let home: TestHome;
  let gateway: GatewayProcess;

  beforeAll(async () => {
    server = await startLlmServer({ apiKey: KEY, models: ['sim-1', 'sim-2'] });
    server.respond(() => say('ready'));
    const [port = 0] = await freePorts(1);
    home = await makeTestHome({ gateway: { port } });
    gateway = await home.start({ NANOBOT__providers__anthropic__apiBase: FIXED });
  });

  afterAll(async () => {
    await home?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  const api = (...call: ApiCall) => callApi(gateway, ...call);
  /** A changed configuration is noticed at the next look. */
  const inForce = async () => (await api('/api/status')).body.model;
  const configured = async () => readFile(join(home.path, 'config.json'), 'utf8');

  it('is offered with the providers, and the demo is said to be one', async () => {
    const { current, vendors } = modelChoices.parse((await api(MODELS)).body);
    expect(current.isDemo).toBe(true);
    const openai = vendors.find(({ vendor }) => vendor === 'openai');
    expect(openai).toMatchObject({ label: 'OpenAI', hasKey: false });
    expect(openai?.defaultModel).toMatch(/^openai\//);
  });

  it('is not saved if the provider refuses the key, which the answer does not repeat', async () => {
    const before = await configured();
    const asked = { model: 'openai/sim-1', apiKey: WRONG, apiBase: server.openaiBase };
    const refused = await api(MODELS, asked);
    expect(refused.status).toBe(422);
    expect(refused.body.error.message).toMatch(/key/i);
    expect(JSON.stringify(refused.body)).not.toContain(WRONG);
    expect(await configured()).toBe(before);
    const ofNobody = [
      { apiKey: 'who-knows-whose' },
      { model: 'sim-1', apiBase: server.openaiBase },
    ];
    for (const unclear of ofNobody) {
      const { status, body } = await api(MODELS, unclear);
      expect([status, body.error.message]).toEqual([
        422,
        expect.stringContaining('cannot tell the provider'),
      ]);
    }
    expect(await configured()).toBe(before);
    const address = await api(MODELS, { model: 'local/sim-1', apiBase: 'ftp://127.0.0.1' });
    expect([address.status, address.body.error.message]).toEqual([
      400,
      'apiBase: Start with http:// or https://',
    ]);
  });

  it('is not saved where a variable of the environment would take precedence', async () => {
    const before = await configured();
    const asked = { model: 'anthropic/sim-1', apiKey: KEY, apiBase: server.openaiBase };
    const { status, body } = await api(MODELS, asked);
    expect([status, body.error.message]).toEqual([
      422,
      expect.stringMatching(
        /^providers\.anthropic\.apiBase: .*NANOBOT__providers__anthropic__apiBase.*precedence.* unset/,
      ),
    ]);
    expect(await configured()).toBe(before);
  });

  it('answers the next message without a restart, and its key is not shown', async () => {
    const asked = { model: 'openai/sim-1', apiKey: KEY, apiBase: server.openaiBase };
    const { status, body } = await api(MODELS, asked);
    expect([status, connectedModel.parse(body).model]).toEqual([200, 'openai/sim-1']);
    await expect.poll(inForce).toBe('openai/sim-1');
    const choices = await api(MODELS);
    const { current, vendors } = modelChoices.parse(choices.body);
    expect(current).toEqual({ name: 'openai/sim-1', isDemo: false });
    expect(vendors.find(({ vendor }) => vendor === 'openai')?.hasKey).toBe(true);
    expect(JSON.stringify(choices.body)).not.toContain(KEY);
    expect(await readFile(join(home.path, 'audit.jsonl'), 'utf8')).toContain(
      'setup model openai/sim-1',
    );
    // Once more, which changes nothing, and another model with the key that is there.
    expect((await api(MODELS, asked)).status).toBe(200);
    expect((await api(MODELS, { model: 'openai/sim-2' })).status).toBe(200);
    await expect.poll(inForce).toBe('openai/sim-2');
  });

  it('can be of a server of one’s own, which lists its models', async () => {
    const own = { apiBase: server.openaiBase, apiKey: KEY };
    expect(listedModels.parse((await api(`${MODELS}/listed`, own)).body).models).toEqual([
      'sim-1',
      'sim-2',
    ]);
    expect((await api(MODELS, { model: 'local/sim-2', ...own })).status).toBe(200);
    await expect.poll(inForce).toBe('local/sim-2');
  });

  it('is for owners alone, and documented', async () => {
    const { paths } = (await api('/api/v1/openapi.json')).body;
    expect(Object.keys(paths).filter((path) => path.includes('setup/models'))).toEqual([
      MODELS,
      `${MODELS}/listed`,
    ]);
    const refused = await api(MODELS, { model: 'demo/x' }, { authorization: 'Bearer none' });
    expect(refused.status).toBe(401);
  });
});
