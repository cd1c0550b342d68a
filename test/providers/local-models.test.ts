// Models on one's own machines, with real HTTP to servers that speak as Ollama, LM Studio, llama.cpp and
// vLLM do, and a clock moved by hand.

import { describe, expect, it } from 'vitest';
import { type ConfigInput, configSchema } from '../../src/kernel/config/config.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createLocalSites } from '../../src/providers/local-site.ts';
import type { CallMeter } from '../../src/providers/provider.ts';
import { createModelRegistry } from '../../src/providers/registry.ts';
import { fail, type LlmServer, say, startLlmServer } from '../support/llm-server.ts';
import { type LocalKind, type LocalModelSpec, localDialect } from '../support/local-dialects.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { ask, collect, finish, timeTool } from './provider-setup.ts';

const QWEN: LocalModelSpec = { id: 'qwen3:8b', loadedTokens: 8192, trainedTokens: 40_960 };
const SIGNAL = new AbortController().signal;

type Vendor = 'ollama' | 'lmstudio' | 'vllm' | 'local';

async function world(
  kind: LocalKind,
  vendor: Vendor,
  models: readonly LocalModelSpec[] = [QWEN],
  more: ConfigInput = {},
) {
  const side = localDialect(kind, models, { keepsAll: true });
  const server = await startLlmServer({ side: side.route, models: models.map(({ id }) => id) });
  const clock = createMovableClock();
  const config = configSchema.parse({
    ...more,
    providers: { [vendor]: { apiBase: server.openaiBase }, ...more.providers },
  });
  const sites = createLocalSites({
    ...{ clock, places: (name) => config.localModels.places[name] },
    memoryGb: () => config.localModels.memoryGb,
  });
  const registry = createModelRegistry({
    ...{ config, env: {}, clock, sites, log: silentLogger },
    random: () => 0.5,
  });
  const model = `${vendor}/${models[0]?.id}`;
  return { side, server, clock, registry, model, handle: () => registry.resolve(model) };
}

async function askedBody(server: LlmServer, handle: Parameters<typeof finish>[0], more = {}) {
  server.script(say('fine'));
  await finish(handle, ask('hello', more));
  return server.requests.at(-1)?.body;
}

describe('the window of a local model', () => {
  it.each([
    ['ollama', 'ollama'],
    ['lmstudio', 'lmstudio'],
    ['llamacpp', 'local'],
    ['vllm', 'vllm'],
    ['lmstudio', 'local'],
    ['vllm', 'local'],
  ] as const)('of %s at %s is what it is loaded with', async (kind, vendor) => {
    const { side, server, registry, handle } = await world(kind, vendor);
    await using _server = server;
    side.loaded.add(QWEN.id);
    expect(handle().contextTokens).toBe(32_768);
    await registry.ready(handle().name);
    expect(handle().contextTokens).toBe(8192);
    const asked = side.asked.length;
    await registry.ready(handle().name);
    expect(side.asked).toHaveLength(asked);
    server.assertDone();
  });

  it('is asked anew after ten minutes, without a turn that waits for it', async () => {
    const model = { ...QWEN };
    const { side, server, clock, registry, handle } = await world('ollama', 'ollama', [model]);
    await using _server = server;
    side.loaded.add(QWEN.id);
    await registry.ready(handle().name);
    Object.assign(model, { loadedTokens: 4096 });
    await clock.advance(599_999);
    expect(registry.ready(handle().name)).toBeUndefined();
    await clock.advance(1);
    expect(registry.ready(handle().name)).toBeUndefined();
    await expect.poll(() => handle().contextTokens, { interval: 5 }).toBe(4096);
  });

  it.each(['ollama', 'lmstudio'] as const)(
    'is asked anew of %s once a call has loaded what could not be loaded before',
    async (kind) => {
      const { side, server, registry, model, handle } = await world(kind, kind);
      await using _server = server;
      side.refuseLoads.push({ status: 500, body: { error: 'no room' } });
      const { site } = registry.localModel(model) ?? {};
      await site?.warmUp(QWEN.id, { meter: undefined }, SIGNAL);
      expect(site?.report().models).toMatchObject([{ warmth: { kind: 'failed' } }]);
      expect(handle().contextTokens).toBe(32_768);
      side.loaded.add(QWEN.id);
      await askedBody(server, handle());
      await expect.poll(() => handle().contextTokens, { interval: 5 }).toBe(8192);
      expect(site?.report().models[0]?.warmth).toBeUndefined();
    },
  );

  it('is asked anew at once where a question was too long', async () => {
    const model = { ...QWEN };
    const { side, server, registry, handle } = await world('ollama', 'ollama', [model]);
    await using _server = server;
    side.loaded.add(QWEN.id);
    await registry.ready(handle().name);
    Object.assign(model, { loadedTokens: 4096 });
    const error = { message: 'the request exceeds the available context size', code: 400 };
    server.script(fail(400, { body: { error } }));
    await expect(finish(handle(), ask('x'))).rejects.toThrow('context size');
    await expect.poll(() => handle().contextTokens, { interval: 5 }).toBe(4096);
  });

  it('is the one named in a refusal while the server goes on to speak of a larger one', async () => {
    const model = { ...QWEN };
    const { side, server, clock, registry, handle } = await world('ollama', 'ollama', [model]);
    await using _server = server;
    side.loaded.add(QWEN.id);
    await registry.ready(handle().name);
    const refuse = async (tokens: number) => {
      const message = `the request exceeds the available context size (${tokens} tokens)`;
      server.script(fail(400, { body: { error: { message, code: 400 } } }));
      await expect(finish(handle(), ask('x'))).rejects.toThrow('context size');
    };
    const asked = async () => {
      const before = side.asked.length;
      await clock.advance(600_000);
      registry.ready(handle().name);
      await expect.poll(() => side.asked.length, { interval: 5 }).toBe(before + 2);
    };
    await refuse(9000);
    expect(handle().contextTokens).toBe(8192);
    await refuse(4096);
    expect(handle().contextTokens).toBe(4096);
    await asked();
    expect(handle().contextTokens).toBe(4096);
    Object.assign(model, { loadedTokens: 16_384 });
    await asked();
    await expect.poll(() => handle().contextTokens, { interval: 5 }).toBe(16_384);
  });

  it('is what the configuration says before all', async () => {
    const modelCapabilities = [{ models: 'qwen3', contextTokens: 20_000 }];
    const more = { modelCapabilities };
    const { server, registry, handle } = await world('ollama', 'ollama', [QWEN], more);
    await using _server = server;
    await registry.ready(handle().name);
    expect(handle().contextTokens).toBe(20_000);
  });

  it.each(['ollama', 'lmstudio'] as const)(
    'is at most the usual one while %s has not loaded it',
    async (kind) => {
      const small = { ...QWEN, trainedTokens: 4096 };
      for (const [model, tokens] of [
        [QWEN, 32_768],
        [small, 4096],
      ] as const) {
        const { server, registry, handle } = await world(kind, kind, [model]);
        await using _server = server;
        await registry.ready(handle().name);
        expect(handle().contextTokens).toBe(tokens);
      }
    },
  );

  it.each([
    ['nonsense', { status: 200, body: { default_generation_settings: { n_ctx: 'many' } } }],
    ['a size no model has', { status: 200, body: { default_generation_settings: { n_ctx: 1 } } }],
    ['a failure', { status: 500, body: { error: 'x' } }],
  ])('is taken from the table where the server says %s', async (_what, answer) => {
    await using server = await startLlmServer({
      side: ({ path }) => (path === '/props' ? answer : undefined),
    });
    const config = configSchema.parse({ providers: { local: { apiBase: server.openaiBase } } });
    const clock = createMovableClock();
    const registry = createModelRegistry({
      ...{ config, env: {}, clock, log: silentLogger, random: () => 0.5 },
    });
    await registry.ready('local/qwen3:8b');
    expect(registry.resolve('local/qwen3:8b').contextTokens).toBe(32_768);
  });
});

describe('what a local server says of its model', () => {
  it('counts before the name', async () => {
    const gemma = { ...QWEN, id: 'gemma3:12b', capabilities: ['completion', 'tools'] };
    const { server, registry, handle } = await world('ollama', 'ollama', [gemma]);
    await using _server = server;
    expect(handle().capabilities.toolCalling).toBe('text');
    await registry.ready(handle().name);
    expect(handle().capabilities.toolCalling).toBe('native');
  });

  it('never takes tools from a model of LM Studio, which calls them all the same', async () => {
    const plain = { ...QWEN, capabilities: [] };
    const { server, registry, handle } = await world('lmstudio', 'lmstudio', [plain]);
    await using _server = server;
    await registry.ready(handle().name);
    expect(handle().capabilities.toolCalling).toBe('native');
  });
});

describe('a call of a local model', () => {
  it.each([
    ['ollama', { reasoning_effort: 'none' }, { reasoning_effort: 'low' }],
    [
      'local',
      { chat_template_kwargs: { enable_thinking: false } },
      { chat_template_kwargs: { enable_thinking: true } },
    ],
  ] as const)('of %s tells a model that thinks whether to', async (vendor, off, on) => {
    const kind = vendor === 'local' ? 'llamacpp' : vendor;
    const { server, handle } = await world(kind, vendor);
    await using _server = server;
    expect(await askedBody(server, handle())).toMatchObject(off);
    expect(await askedBody(server, handle(), { thinkingBudget: 2000 })).toMatchObject(on);
    server.assertDone();
  });

  it('has its server asked for its window afterwards, where nobody did before', async () => {
    const { server, handle } = await world('llamacpp', 'local');
    await using _server = server;
    await askedBody(server, handle());
    await expect.poll(() => handle().contextTokens, { interval: 5 }).toBe(8192);
  });

  it('says nothing of thinking to a model that does not', async () => {
    const plain = { ...QWEN, id: 'llama3.1:8b' };
    const { server, handle } = await world('ollama', 'ollama', [plain]);
    await using _server = server;
    expect(await askedBody(server, handle())).not.toHaveProperty('reasoning_effort');
  });

  it('asks for no longer answer than the model writes well', async () => {
    const tiny = { ...QWEN, id: 'functiongemma' };
    const { server, handle } = await world('ollama', 'ollama', [tiny]);
    await using _server = server;
    expect(await askedBody(server, handle(), { maxTokens: 4000 })).toMatchObject({
      max_tokens: 512,
    });
    const modelCapabilities = [{ models: 'functiongemma', maxReliableOutput: 700 }];
    const other = await world('ollama', 'ollama', [tiny], { modelCapabilities });
    await using _other = other.server;
    const body = await askedBody(other.server, other.handle(), { maxTokens: 4000 });
    expect(body).toMatchObject({ max_tokens: 700 });
  });

  it('waits while the model is loaded: 2, 4, 8 and again 8 seconds', async () => {
    const { server, clock, handle } = await world('ollama', 'ollama');
    await using _server = server;
    const loading = fail(503, { body: { error: { message: 'model is loading' } } });
    server.script(loading, loading, loading, loading, say('here'));
    const waits: number[] = [];
    for await (const event of handle().stream(ask('hello'), SIGNAL)) {
      if (event.type !== 'retrying') continue;
      waits.push(event.delayMs);
      expect(event.reason).toBe('Ollama is loading the model');
      setImmediate(() => void clock.advance(event.delayMs));
    }
    expect(waits).toEqual([2000, 4000, 8000, 8000]);
  });
});

/** Says of each try when it began and how long it waited before. */
function watchingMeter(seen: unknown[]): CallMeter {
  return {
    about: { role: 'test' },
    async begin(_model, _signal, at) {
      seen.push(at?.waitedMs);
      return { maxTokens: 100, end: () => undefined };
    },
  };
}

describe('the gate before a local server', () => {
  it('lets one call at a time through, for its whole stream, and measures the wait apart', async () => {
    const { server, clock, registry, model, handle } = await world('ollama', 'ollama');
    await using _server = server;
    const { promise: rest, resolve: release } = Promise.withResolvers<void>();
    server.script({ chunks: ['first ', rest, 'ends'] }, say('second'), say('third'));
    const waited: unknown[] = [];
    const call = () => collect(handle().stream(ask('x'), SIGNAL, watchingMeter(waited)));
    const first = call();
    await server.received(1);
    const second = call();
    const third = call();
    await clock.advance(3000);
    expect(server.requests).toHaveLength(1);
    expect(registry.localModel(model)?.site.report().load).toMatchObject({
      running: 1,
      waiting: 2,
    });
    release();
    await Promise.all([first, second, third]);
    expect(waited).toEqual([0, 3000, 3000]);
    expect((await second)[0]).toEqual({ type: 'waiting', server: 'Ollama', ahead: 1 });
    expect((await third)[0]).toEqual({ type: 'waiting', server: 'Ollama', ahead: 2 });
    expect(registry.localModel(model)?.site.report().load).toEqual({
      ...{ running: 0, waiting: 0, calls: 3, waitedMs: 6000 },
    });
  });

  it('counts no deadline of a call before it began', async () => {
    const { server, clock, handle } = await world('ollama', 'ollama', [QWEN], {
      timeouts: { firstTokenSecs: 5, streamIdleSecs: 1000, modelCallSecs: 1000 },
      retry: { providerAttempts: 0 },
    });
    await using _server = server;
    const { promise: rest, resolve: release } = Promise.withResolvers<void>();
    server.script({ chunks: ['a ', rest, 'b'] }, say('second'));
    const words = handle().stream(ask('x'), new AbortController().signal)[Symbol.asyncIterator]();
    expect((await words.next()).value).toMatchObject({ type: 'text' });
    const first = Array.fromAsync({ [Symbol.asyncIterator]: () => words });
    const second = finish(handle(), ask('y'));
    await clock.advance(60_000);
    release();
    expect((await first).at(-1)).toMatchObject({ type: 'finished', text: 'a b' });
    expect((await second).text).toBe('second');
  });

  it('forgets whoever stops waiting, and goes on when a stream is left behind', async () => {
    const { server, handle } = await world('ollama', 'ollama');
    await using _server = server;
    server.script({ chunks: ['never ', new Promise(() => undefined)] }, say('next'));
    const left = new AbortController();
    const gone = new AbortController();
    const events = handle().stream(ask('x'), left.signal)[Symbol.asyncIterator]();
    await events.next();
    const waiting = collect(handle().stream(ask('y'), gone.signal));
    const next = finish(handle(), ask('z'));
    gone.abort();
    await expect(waiting).rejects.toMatchObject({ failure: { kind: 'cancelled' } });
    // Nobody asks the first stream for more, or closes it.
    left.abort();
    expect((await next).text).toBe('next');
    expect(server.requests).toHaveLength(2);
  });

  it('is one for both names of an address, and as wide as it is configured', async () => {
    const { server, handle } = await world('vllm', 'vllm', [QWEN], {
      localModels: { places: { vllm: 2 } },
    });
    await using _server = server;
    const hold = new Promise(() => undefined);
    server.script({ gate: hold }, { gate: hold }, { gate: hold });
    const stop = new AbortController();
    const calls = [1, 2, 3].map(() => collect(handle().stream(ask('x'), stop.signal)));
    await server.received(2);
    expect(server.requests).toHaveLength(2);
    stop.abort();
    await Promise.allSettled(calls);
    const at = (host: string) => server.openaiBase.replace('127.0.0.1', host);
    const config = configSchema.parse({
      providers: { ollama: { apiBase: at('localhost') }, local: { apiBase: at('127.0.0.1') } },
    });
    const registry = createModelRegistry({
      ...{ config, env: {}, clock: createMovableClock(), log: silentLogger, random: () => 0.5 },
    });
    expect(registry.localModel('ollama/a')?.site).toBe(registry.localModel('local/a')?.site);
    expect(registry.localModel('anthropic/claude-opus-4-5')).toBeUndefined();
  });
});

describe('warming up', () => {
  const loadingAnswer = { status: 503, body: { error: 'model is loading' } };

  it.each(['ollama', 'lmstudio'] as const)(
    'has %s load the model, waits it out, and knows its window then',
    async (kind) => {
      const { side, server, clock, registry, model, handle } = await world(kind, kind);
      await using _server = server;
      side.refuseLoads.push(loadingAnswer);
      const { site } = registry.localModel(model) ?? {};
      const waited: unknown[] = [];
      const warming = site?.warmUp(QWEN.id, { meter: watchingMeter(waited) }, SIGNAL);
      await expect.poll(() => clock.pending, { interval: 5 }).toBe(1);
      expect(site?.report().models).toMatchObject([{ warmth: { kind: 'warming' } }]);
      await clock.advance(2000);
      await warming;
      expect(site?.report().models).toMatchObject([{ warmth: { kind: 'ready', tookMs: 2000 } }]);
      expect(side.loaded).toEqual(new Set([QWEN.id]));
      expect(handle().contextTokens).toBe(8192);
      expect(waited).toEqual([0, 0]);
      server.assertDone();
    },
  );

  it('says of a model that the server does not have that it could not be loaded', async () => {
    const { server, registry } = await world('ollama', 'ollama');
    await using _server = server;
    const { site } = registry.localModel('ollama/typo:8b') ?? {};
    await site?.warmUp('typo:8b', { meter: undefined }, SIGNAL);
    expect(site?.report().models).toMatchObject([{ warmth: { kind: 'failed' } }]);
  });

  it('asks nothing of a model that is there, and says where nobody answers', async () => {
    const { side, server, registry, model } = await world('llamacpp', 'local');
    const { site } = registry.localModel(model) ?? {};
    await site?.warmUp(QWEN.id, { meter: undefined }, SIGNAL);
    expect(site?.report().models).toMatchObject([{ warmth: { kind: 'ready' } }]);
    expect(side.asked).toEqual(['/props']);
    expect(server.requests).toEqual([]);
    await server[Symbol.asyncDispose]();
    const other = await world('ollama', 'ollama');
    await other.server[Symbol.asyncDispose]();
    const dead = other.registry.localModel(other.model)?.site;
    await dead?.warmUp(QWEN.id, { meter: undefined }, SIGNAL);
    expect(dead?.report().models).toMatchObject([{ warmth: { kind: 'failed' } }]);
  });
});

it('a server is not taken for dead while a call runs on it, and after three failures else', async () => {
  const { server, clock, registry, model } = await world('ollama', 'ollama');
  const site = registry.localModel(model)?.site;
  const place = await site?.enter(QWEN.id, SIGNAL);
  await server[Symbol.asyncDispose]();
  const looks = async () => [await site?.look(1000, SIGNAL), await site?.look(1000, SIGNAL)];
  expect([...(await looks()), ...(await looks()), site?.report().state]).not.toContain('down');
  place?.[Symbol.dispose]();
  await clock.advance(2000);
  await looks();
  expect(site?.report().state).toBe('up');
  await looks();
  expect(site?.report().state).toBe('down');
});

it('a fallback of a service is asked for its own longest answer, not for that of a small model', async () => {
  const tiny = { ...QWEN, id: 'functiongemma' };
  await using cloud = await startLlmServer();
  const { server, handle } = await world('ollama', 'ollama', [tiny], {
    agents: { defaults: { fallbackModels: ['openai/sim-1'] } },
    providers: { openai: { apiKey: 'sk-x', apiBase: cloud.openaiBase } },
    retry: { providerAttempts: 0 },
  });
  await using _server = server;
  server.script(fail(500));
  cloud.script(say('from the cloud'));
  await finish(handle(), ask('x', { maxTokens: 4000, tools: [timeTool] }));
  expect(cloud.requests[0]?.body).toMatchObject({ max_completion_tokens: 4000 });
});

describe('the memory of this machine', () => {
  const model = (id: string, gigabytes: number) => ({ ...QWEN, id, bytes: gigabytes * 1e9 });
  const MODELS = [model('a', 4), model('b', 3), model('c', 5), model('d', 20)];
  const limited = { localModels: { memoryGb: 10 } };

  it.each(['ollama', 'lmstudio'] as const)(
    'is kept below its limit at %s: what was used longest ago is unloaded',
    async (kind) => {
      const { side, server, clock, registry } = await world(kind, kind, MODELS, limited);
      await using _server = server;
      const warm = async (id: string) => {
        await clock.advance(1000);
        await registry.localModel(`${kind}/${id}`)?.site.warmUp(id, { meter: undefined }, SIGNAL);
      };
      await warm('a');
      await warm('b');
      expect(side.loaded).toEqual(new Set(['a', 'b']));
      server.script(say('fine'));
      await clock.advance(1000);
      await finish(registry.resolve(`${kind}/a`), ask('x'));
      await warm('c');
      expect(side.loaded).toEqual(new Set(['a', 'c']));
      server.assertDone();
    },
  );

  it('is waited for while the model that takes it answers', async () => {
    const { side, server, clock, registry } = await world('ollama', 'ollama', MODELS, {
      localModels: { memoryGb: 6, places: { ollama: 2 } },
    });
    await using _server = server;
    side.loaded.add('a');
    const { promise: rest, resolve: release } = Promise.withResolvers<void>();
    server.script({ chunks: ['first ', rest, 'ends'] }, say('second'));
    const first = finish(registry.resolve('ollama/a'), ask('x'));
    await server.received(1);
    let isOver = false;
    const second = finish(registry.resolve('ollama/c'), ask('x')).finally(() => {
      isOver = true;
    });
    await expect.poll(() => clock.pending, { interval: 5 }).toBeGreaterThan(0);
    await clock.advance(2000);
    expect(server.requests).toHaveLength(1);
    expect(side.loaded).toEqual(new Set(['a']));
    release();
    await first;
    while (!isOver) await clock.advance(500);
    expect((await second).text).toBe('second');
    expect(side.loaded).not.toContain('a');
  });

  it('refuses a model that does not fit, with what to do, and unloads nothing in vain', async () => {
    const { server, registry } = await world('ollama', 'ollama', MODELS, limited);
    await using _server = server;
    await expect(finish(registry.resolve('ollama/d'), ask('x'))).rejects.toMatchObject({
      failure: { kind: 'rejected' },
      userText: expect.stringMatching(/d needs 20\.0 GB .*localModels\.memoryGb allows 10/),
    });
    expect(server.requests).toEqual([]);
  });

  it('is no matter without a limit, or for a server of another machine', async () => {
    const { side, server, registry } = await world('ollama', 'ollama', MODELS);
    await using _server = server;
    server.script(say('fine'));
    await finish(registry.resolve('ollama/d'), ask('x'));
    expect(side.asked.filter((asked) => asked === '/api/tags')).toEqual([]);
  });
});
