// What a model server may send without end: the work for it grows with its length and no faster, and so
// does what one answer may ask for.

import { createServer } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { configSchema } from '../../src/kernel/config/config.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { MAX_CALLS } from '../../src/providers/completion.ts';
import { createModelRegistry } from '../../src/providers/registry.ts';
import { createRig } from '../agent/agent-rig.ts';
import { growthOf, PROPORTIONAL } from '../support/cpu-time.ts';
import { portOf } from '../support/listening.ts';
import { createMovableClock } from '../support/movable-clock.ts';

type Piece = Readonly<Record<string, unknown>>;
/** `n`: how much of it. */
type Stream = (n: number) => Iterable<Piece>;

const openai = (delta: Piece, more: Piece = {}): Piece => ({
  ...{ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm' },
  choices: [{ index: 0, delta, ...more }],
});
const call = (index: number, id: string, name: string, given: string) => ({
  ...{ index, id, type: 'function' },
  function: { name, arguments: given },
});

function* repeated(n: number, piece: (at: number) => Piece): Iterable<Piece> {
  for (let at = 0; at < n; at += 1) yield piece(at);
}
/** `last`: so that there is an answer. */
function* ended(pieces: Iterable<Piece>, last = ''): Iterable<Piece> {
  yield* pieces;
  if (last !== '') yield openai({ content: last });
  yield openai({}, { finish_reason: 'stop' });
}

const OPENAI: Readonly<Record<string, Stream>> = {
  text: (n) => ended(repeated(n, (at) => openai({ content: `w${at} ` }))),
  lines: (n) => ended(repeated(n, (at) => openai({ content: `line ${at}\n` }))),
  blanks: (n) =>
    ended(
      repeated(n, () => openai({ content: ' \n' })),
      'done',
    ),
  braces: (n) => ended(repeated(n, () => openai({ content: '\n{"a":' }))),
  fences: (n) => ended(repeated(n, () => openai({ content: '\n```json\n{' }))),
  tags: (n) =>
    ended(
      repeated(n, () => openai({ content: '\n<tool_call>' })),
      '</tool_call>\ndone',
    ),
  marks: (n) => ended(repeated(n, () => openai({ content: '<' }))),
  ticks: (n) => ended(repeated(n, () => openai({ content: '`' }))),
  thoughts: (n) =>
    ended(
      repeated(n, (at) => openai({ content: at === 0 ? '<think>' : ` t${at}` })),
      '</think>done',
    ),
  reasoning: (n) =>
    ended(
      repeated(n, (at) => openai({ reasoning_content: `r${at} ` })),
      'done',
    ),
  argument: (n) =>
    ended(
      repeated(n, (at) =>
        openai({
          tool_calls: [
            at === 0
              ? call(0, 'c', 'look', '{"page": "')
              : { index: 0, function: { arguments: 'x y ' } },
          ],
        }),
      ),
    ),
  calls: (n) =>
    ended(
      repeated(n, (at) => openai({ tool_calls: [call(at, `c${at}`, 'look', `{"page":${at}}`)] })),
    ),
  'calls without ids': (n) =>
    ended(repeated(n, (at) => openai({ tool_calls: [call(at, '', 'look', '{}')] }))),
  'calls in one piece': (n) =>
    ended([
      openai({ tool_calls: Array.from({ length: n }, (_, at) => call(at, '', 'look', '{}')) }),
    ]),
};

const event = (type: string, fields: Piece): Piece => ({ type, ...fields });
function* anthropic(pieces: Iterable<Piece>): Iterable<Piece> {
  const usage = { input_tokens: 1, output_tokens: 1 };
  yield event('message_start', {
    message: { id: 'm', type: 'message', role: 'assistant', content: [], model: 'm', usage },
  });
  yield* grown(1, { type: 'text', text: '' }, () => ({ type: 'text_delta', text: 'done' }));
  yield* pieces;
  yield event('message_delta', { delta: { stop_reason: 'end_turn' }, usage });
  yield event('message_stop', {});
}
function* blocks(
  n: number,
  start: (at: number) => Piece,
  deltas: (at: number) => readonly Piece[],
): Iterable<Piece> {
  for (let index = 0; index < n; index += 1) {
    yield event('content_block_start', { index, content_block: start(index) });
    for (const delta of deltas(index)) yield event('content_block_delta', { index, delta });
    yield event('content_block_stop', { index });
  }
}
function* grown(n: number, start: Piece, delta: (at: number) => Piece): Iterable<Piece> {
  yield event('content_block_start', { index: 0, content_block: start });
  for (let at = 0; at < n; at += 1)
    yield event('content_block_delta', { index: 0, delta: delta(at) });
  yield event('content_block_stop', { index: 0 });
}

const ANTHROPIC: Readonly<Record<string, Stream>> = {
  text: (n) =>
    anthropic(
      grown(n, { type: 'text', text: '' }, (at) => ({ type: 'text_delta', text: `w${at} ` })),
    ),
  thinking: (n) =>
    anthropic(
      grown(n, { type: 'thinking', thinking: '', signature: '' }, (at) => ({
        type: 'thinking_delta',
        thinking: `t${at} `,
      })),
    ),
  signature: (n) =>
    anthropic(
      grown(n, { type: 'thinking', thinking: '', signature: '' }, () => ({
        type: 'signature_delta',
        signature: 'c2ln',
      })),
    ),
  argument: (n) =>
    anthropic(
      grown(n, { type: 'tool_use', id: 'c', name: 'look', input: {} }, () => ({
        type: 'input_json_delta',
        partial_json: '     ',
      })),
    ),
  calls: (n) =>
    anthropic(
      blocks(
        n,
        () => ({ type: 'tool_use', id: 'same', name: 'look', input: {} }),
        (at) => [{ type: 'input_json_delta', partial_json: `{"page":${at}}` }],
      ),
    ),
  blocks: (n) =>
    anthropic(
      blocks(
        n,
        () => ({ type: 'redacted_thinking', data: 'ZGF0YQ' }),
        () => [],
      ),
    ),
};

async function startServer() {
  const state: { stream: Iterable<Piece>; isAnthropic: boolean; calls: number } = {
    stream: [],
    isAnthropic: false,
    calls: 0,
  };
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    if (request.method !== 'POST') return void response.writeHead(404).end();
    state.calls += 1;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    // The second question of a turn is answered in a word.
    const pieces =
      state.calls > 1
        ? [...((state.isAnthropic ? ANTHROPIC : OPENAI)['text']?.(1) ?? [])]
        : state.stream;
    let text = '';
    for (const piece of pieces) {
      text += `${state.isAnthropic ? `event: ${String(piece['type'])}\n` : ''}data: ${JSON.stringify(piece)}\n\n`;
      if (text.length < 60_000) continue;
      if (!response.write(text))
        await new Promise((resolve) => response.once('drain', resolve).once('close', resolve));
      text = '';
      if (response.destroyed) return;
    }
    response.end(`${text}${state.isAnthropic ? '' : 'data: [DONE]\n\n'}`);
  });
  const port = await portOf(server);
  onTestFinished(() => void server.close().closeAllConnections());
  return { state, url: `http://127.0.0.1:${port}` };
}

const MODELS = {
  openai: 'openai/sim-1',
  local: 'ollama/sim-1',
  anthropic: 'anthropic/claude-sonnet-4-5',
};

async function open(kind: keyof typeof MODELS) {
  const { state, url } = await startServer();
  state.isAnthropic = kind === 'anthropic';
  const config = configSchema.parse({
    agents: { defaults: { model: MODELS[kind] } },
    providers: {
      openai: { apiKey: 'k', apiBase: `${url}/v1` },
      ollama: { apiBase: `${url}/v1` },
      anthropic: { apiKey: 'k', apiBase: url },
    },
    retry: { providerAttempts: 0 },
  });
  const models = createModelRegistry({
    config,
    env: {},
    clock: createMovableClock(),
    log: silentLogger,
    random: () => 0,
  });
  let looks = 0;
  const look = {
    name: 'look',
    access: 'read' as const,
    run: async () => {
      looks += 1;
      return `page ${looks}`;
    },
  };
  const rig = await createRig({ models, tools: [look], settings: { maxSameCalls: 100_000 } });
  let seq = 0;
  /** Processor time in microseconds. */
  const ask = async (stream: Iterable<Piece>) => {
    state.stream = stream;
    state.calls = 0;
    seq += 1;
    const before = process.cpuUsage();
    const { outcome } = await rig.run(rig.inputOf(seq, ['go on']));
    const { user, system } = process.cpuUsage(before);
    await rig.agent.reset(rig.place[0]);
    return { outcome, micros: user + system };
  };
  return { ask, looks: () => looks };
}

const SIZES: readonly (readonly [keyof typeof MODELS, string, Stream])[] = [
  ...Object.entries(OPENAI).map(([name, stream]) => ['openai', name, stream] as const),
  ...Object.entries(OPENAI).map(([name, stream]) => ['local', name, stream] as const),
  ...Object.entries(ANTHROPIC).map(([name, stream]) => ['anthropic', name, stream] as const),
];

it.each(SIZES)('of %s: work for %s grows with its length', async (kind, _, stream) => {
  const { ask } = await open(kind);
  const cpuOf = async (pieces: number) => (await ask(stream(pieces))).micros / 1000;
  expect(await growthOf(cpuOf, 4000)).toBeLessThan(PROPORTIONAL);
});

it.each(['openai', 'anthropic'] as const)(
  'of %s: more calls than an answer may hold are not taken',
  async (kind) => {
    const { ask, looks } = await open(kind);
    const { calls } = kind === 'openai' ? OPENAI : ANTHROPIC;
    const { outcome } = await ask(calls?.(20_000) ?? []);
    expect(outcome.kind).toBe('answered');
    expect(looks()).toBeGreaterThan(0);
    expect(looks()).toBeLessThanOrEqual(MAX_CALLS);
  },
);
