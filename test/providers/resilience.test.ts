// Retries, fallbacks and shared pauses, with a clock moved by hand and real HTTP underneath.

import { describe, expect, test } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { ProviderError } from '../../src/kernel/message/errors.ts';
import type { CallMeter, ModelEvent, ModelHandle } from '../../src/providers/provider.ts';
import { fail, type LlmReply, type LlmServer, say, startLlmServer } from '../support/llm-server.ts';
import { createMovableClock, type MovableClock } from '../support/movable-clock.ts';
import { ask, collect, simulated, timeTool } from './provider-setup.ts';

const FALLBACK: ConfigInput = {
  agents: { defaults: { fallbackModels: ['openai/second'] } },
};

type Outcome = { readonly events: readonly ModelEvent[]; readonly error?: ProviderError };

async function outcomeOf(events: AsyncIterable<ModelEvent>): Promise<Outcome> {
  const seen: ModelEvent[] = [];
  try {
    for await (const event of events) seen.push(event);
    return { events: seen };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return { events: seen, error };
  }
}

/** Asks, and moves the clock on whenever the model waits for a retry. */
async function askMovingTime(
  handle: ModelHandle,
  clock: MovableClock,
  signal = new AbortController().signal,
): Promise<Outcome & { readonly waits: readonly number[] }> {
  const waits: number[] = [];
  async function* moving() {
    for await (const event of handle.stream(ask('hello', { tools: [timeTool] }), signal)) {
      if (event.type === 'retrying' && event.delayMs > 0) {
        waits.push(event.delayMs);
        setImmediate(() => void clock.advance(event.delayMs));
      }
      yield event;
    }
  }
  return { ...(await outcomeOf(moving())), waits };
}

async function run(
  replies: readonly LlmReply[],
  options: { readonly config?: ConfigInput; readonly model?: string } = {},
) {
  await using server = await startLlmServer();
  server.script(...replies);
  const clock = createMovableClock();
  const outcome = await askMovingTime(simulated('openai', server, { ...options, clock }), clock);
  server.assertDone();
  return { ...outcome, models: modelsOf(server) };
}

const modelsOf = (server: LlmServer) => server.requests.map((request) => request.model);

describe('one call', () => {
  test('is tried again after 1, 2 and 4 seconds and then answers', async () => {
    const { waits, events } = await run([
      fail(500),
      fail(503),
      { fault: { kind: 'refuse' } },
      say('back'),
    ]);
    expect(waits).toEqual([1000, 2000, 4000]);
    expect(events.at(-1)).toMatchObject({ type: 'finished', text: 'back' });
  });

  test('waits as long as the server asks', async () => {
    const { waits } = await run([fail(429, { headers: { 'retry-after': '20' } }), say('back')]);
    expect(waits[0]).toBeGreaterThanOrEqual(20_000);
  });

  test('does not wait for minutes but says how long the server wants', async () => {
    const { waits, error } = await run([fail(429, { headers: { 'retry-after': '300' } })]);
    expect(waits).toEqual([]);
    expect(error?.userText).toContain('5 minutes');
  });

  test('is never repeated once a person has seen text', async () => {
    const { error, models } = await run([{ chunks: ['Dear'], fault: { kind: 'drop' } }], {
      config: FALLBACK,
    });
    expect(error?.failure).toEqual({ kind: 'network' });
    expect(models).toEqual(['sim-1']);
  });

  test('is repeated when only thinking was streamed', async () => {
    const { events } = await run([{ thinking: 'hm', fault: { kind: 'drop' } }, say('now')]);
    expect(events.map((event) => event.type)).toEqual(['thinking', 'retrying', 'text', 'finished']);
  });

  test.each([
    ['a refused key', fail(401)],
    ['an unknown model', fail(404, { body: { error: { message: 'model not found' } } })],
    ['a refused request', fail(400)],
  ])('%s is not tried again', async (_danger, reply) => {
    const { models, error } = await run([reply]);
    expect(models).toHaveLength(1);
    expect(error?.userText).toBeDefined();
  });
});

describe('fallback models', () => {
  test('answer in order when the first cannot, and the answer names its model', async () => {
    const config = {
      agents: { defaults: { fallbackModels: ['openai/second', 'anthropic/claude-3'] } },
    };
    const { events, models } = await run([fail(401), fail(401), say('third')], { config });
    expect(models).toEqual(['sim-1', 'second', 'claude-3']);
    expect(events.at(-1)).toMatchObject({
      type: 'finished',
      text: 'third',
      model: 'anthropic/claude-3',
    });
  });

  test('take over at once when the wait would be too long', async () => {
    const limited = fail(429, { headers: { 'retry-after': '120' } });
    const { waits, events } = await run([limited, say('second')], { config: FALLBACK });
    expect(waits).toEqual([]);
    expect(events.at(-1)).toMatchObject({ text: 'second' });
  });

  test('answer alone while the first is away: it is tried less, then not at all, then once in a while', async () => {
    await using server = await startLlmServer({
      respond: ({ model }) => (model === 'sim-1' && isAway ? fail(503) : say(`from ${model}`)),
    });
    let isAway = true;
    const clock = createMovableClock();
    const handle = simulated('openai', server, { config: FALLBACK, clock });
    const askOnce = async () => {
      const before = server.requests.length;
      const { events } = await askMovingTime(handle, clock);
      expect(events.at(-1)).toMatchObject({ type: 'finished' });
      return modelsOf(server).slice(before);
    };
    expect(await askOnce()).toEqual(['sim-1', 'sim-1', 'sim-1', 'sim-1', 'second']);
    expect(await askOnce()).toEqual(['sim-1', 'second']);
    expect(await askOnce()).toEqual(['sim-1', 'second']);
    expect(await askOnce()).toEqual(['second']);
    expect(await askOnce()).toEqual(['second']);
    await clock.advance(300_000);
    expect(await askOnce()).toEqual(['sim-1', 'second']);
    expect(await askOnce()).toEqual(['second']);
    isAway = false;
    await clock.advance(300_000);
    expect(await askOnce()).toEqual(['sim-1']);
    isAway = true;
    expect(await askOnce()).toEqual(['sim-1', 'sim-1', 'sim-1', 'sim-1', 'second']);
    server.assertDone();
  });

  test('that fail leave the answer to a model that rested, should it be back', async () => {
    await using server = await startLlmServer({
      respond: ({ model }) => (model === away ? fail(503) : say(`from ${model}`)),
    });
    let away = 'sim-1';
    const clock = createMovableClock();
    const config = { ...FALLBACK, retry: { providerAttempts: 0 } };
    const handle = simulated('openai', server, { config, clock });
    for (let call = 0; call < 3; call += 1) await askMovingTime(handle, clock);
    away = 'second';
    const { events } = await askMovingTime(handle, clock);
    expect(events.at(-1)).toMatchObject({ type: 'finished', text: 'from sim-1' });
    expect(modelsOf(server).slice(-2)).toEqual(['second', 'sim-1']);
    server.assertDone();
  });

  test('that may not be asked leave the answer to a model that rested', async () => {
    await using server = await startLlmServer({
      respond: () => (isAway ? fail(503) : say('back')),
    });
    let isAway = true;
    const clock = createMovableClock();
    const handle = simulated('openai', server, { config: FALLBACK, clock });
    for (let call = 0; call < 3; call += 1) await askMovingTime(handle, clock);
    isAway = false;
    const meter: CallMeter = {
      about: { role: 'main' },
      async begin(model) {
        if (model !== handle.name) throw new Error('only models at home');
        return { maxTokens: 100, end: () => undefined };
      },
    };
    const { events } = await outcomeOf(
      handle.stream(ask('hello'), new AbortController().signal, meter),
    );
    expect(events.at(-1)).toMatchObject({ type: 'finished', text: 'back' });
  });

  test('that nobody serves are left out', async () => {
    const config = {
      agents: { defaults: { fallbackModels: ['groq/x', 'nonsense', 'openai/second'] } },
    };
    expect((await run([fail(401), say('ok')], { config })).models).toEqual(['sim-1', 'second']);
  });
});

describe('many sessions on one provider (case R12)', () => {
  test('a session whose request is refused leaves twenty others untouched', async () => {
    await using server = await startLlmServer({
      respond: (request) => (request.lastUserText === 'poison' ? fail(400) : say('fine')),
    });
    const clock = createMovableClock();
    const handle = simulated('openai', server, { clock });
    const signal = new AbortController().signal;
    const others = Array.from({ length: 20 }, (_, n) => `question ${n}`);
    const texts = ['poison', ...others, 'poison'];
    const outcomes = await Promise.all(
      texts.map((text) => outcomeOf(handle.stream(ask(text), signal))),
    );
    expect(outcomes.filter((outcome) => outcome.error !== undefined)).toHaveLength(2);
    expect(outcomes.flatMap((o) => o.events).filter((e) => e.type === 'retrying')).toEqual([]);
    server.assertDone();
  });

  test('when the vendor asks for a pause, the next call waits too instead of asking', async () => {
    await using server = await startLlmServer();
    server.script(fail(429, { headers: { 'retry-after': '10' } }));
    const clock = createMovableClock();
    const config = { retry: { providerAttempts: 0 } };
    const handle = simulated('openai', server, { config, clock });
    await outcomeOf(handle.stream(ask('first'), new AbortController().signal));
    server.script(say('later'));
    const second = await askMovingTime(handle, clock);
    expect(second.waits[0]).toBeGreaterThanOrEqual(10_000);
    expect(second.events.at(-1)).toMatchObject({ text: 'later' });
  });
});

test('a stop during the wait ends the call at once', async () => {
  await using server = await startLlmServer();
  server.script(fail(500));
  const stop = new AbortController();
  const handle = simulated('openai', server, { clock: createMovableClock() });
  const events = handle.stream(ask('hello'), stop.signal);
  const reading = (async () => {
    for await (const event of events) if (event.type === 'retrying') stop.abort();
  })();
  await expect(reading).rejects.toMatchObject({ failure: { kind: 'cancelled' } });
  server.assertDone();
});

describe('deadlines', () => {
  const config: ConfigInput = {
    retry: { providerAttempts: 0 },
    timeouts: { firstTokenSecs: 30, streamIdleSecs: 10, modelCallSecs: 100 },
  };

  test('a server that never answers is left after the first-token deadline', async () => {
    await using server = await startLlmServer();
    server.script({ fault: { kind: 'hang' } });
    const clock = createMovableClock();
    const handle = simulated('openai', server, { config, clock });
    const outcome = outcomeOf(handle.stream(ask('hello'), new AbortController().signal));
    await server.received(1);
    await clock.advance(30_000);
    expect((await outcome).error?.failure).toEqual({ kind: 'timeout', stage: 'first_token' });
    await server.requests[0]?.abandoned;
    expect(clock.pending).toBe(0);
  });

  test.each(['openai', 'anthropic'] as const)(
    'a %s stream that falls silent is left after the idle deadline',
    async (dialect) => {
      await using server = await startLlmServer();
      server.script({ chunks: ['Dear'], fault: { kind: 'stall' } });
      const clock = createMovableClock();
      const handle = simulated(dialect, server, { config, clock });
      async function* moving() {
        for await (const event of handle.stream(ask('hello'), new AbortController().signal)) {
          if (event.type === 'text') setImmediate(() => void clock.advance(10_000));
          yield event;
        }
      }
      const { error } = await outcomeOf(moving());
      expect(error?.failure).toEqual({ kind: 'timeout', stage: 'idle' });
      await server.requests[0]?.abandoned;
    },
  );

  test('a stream that drips for ever is left after the whole-call deadline', async () => {
    await using server = await startLlmServer();
    server.script({ chunks: ['drip '], fault: { kind: 'endless' } });
    const clock = createMovableClock();
    const handle = simulated('openai', server, { config, clock });
    let drips = 0;
    async function* moving() {
      for await (const event of handle.stream(ask('hello'), new AbortController().signal)) {
        drips += 1;
        if (drips % 10 === 0) await clock.advance(5000);
        yield event;
      }
    }
    const { error } = await outcomeOf(moving());
    expect(error?.failure).toEqual({ kind: 'timeout', stage: 'whole_call' });
  });
});

test('what is logged of calls holds model, time and tokens, never a key or a prompt', async () => {
  await using server = await startLlmServer();
  const leak = { error: { message: 'Incorrect API key provided: sk-test-0123456789abcdef' } };
  server.script(say('fine'), { fault: { kind: 'status', status: 401, body: leak } });
  const lines: string[] = [];
  const note = (message: string, fields: object = {}) => {
    const error = 'error' in fields && fields.error instanceof Error ? fields.error.message : '';
    lines.push(`${message} ${JSON.stringify(fields)} ${error}`);
  };
  const log = { debug: note, info: note, warn: note, error: note, child: () => log };
  const handle = simulated('openai', server, { log });
  const signal = new AbortController().signal;
  await collect(handle.stream(ask('my private question'), signal));
  const { error } = await outcomeOf(handle.stream(ask('my private question'), signal));
  expect(lines[0]).toContain('"model":"openai/sim-1"');
  expect(lines[0]).toContain('"outputTokens":5');
  expect(lines).toHaveLength(2);
  const everything = [...lines, error?.message, error?.userText].join('\n');
  expect(everything).not.toMatch(/0123456789abcdef|private question/);
});
