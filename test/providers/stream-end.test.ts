// Where a streamed answer ends: at its last event, whatever the connection does behind it.

import { createServer, globalAgent, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { configSchema } from '../../src/kernel/config/config.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { createAnthropicProvider } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenaiProvider } from '../../src/providers/openai/openai.ts';
import { createImageSource } from '../../src/providers/seen-images.ts';
import { vendorOf } from '../../src/providers/vendors.ts';
import { closed, portOf } from '../support/listening.ts';
import { ask, collect } from './provider-setup.ts';

type Handler = (response: ServerResponse, request: IncomingMessage) => void;

async function startServer(handle: Handler) {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    handle(response, request);
  });
  const port = await portOf(server);
  return {
    apiBase: `http://127.0.0.1:${port}/v1`,
    async [Symbol.asyncDispose]() {
      await closed(server);
    },
  };
}

const TIMEOUTS = { firstTokenMs: 60_000, idleMs: 60_000, wholeCallMs: 60_000 };

const DIALECTS = { openai: createOpenaiProvider, anthropic: createAnthropicProvider } as const;
type Dialect = keyof typeof DIALECTS;

function askAt(apiBase: string, dialect: Dialect) {
  const images = createImageSource(configSchema.parse({}));
  const vendor = { ...vendorOf(dialect), apiBase };
  const deps = { apiBase, apiKey: '', timeouts: TIMEOUTS, clock: systemClock, images, vendor };
  const request = { ...ask('hi'), model: 'model-1' };
  return DIALECTS[dialect](deps).stream(request, new AbortController().signal);
}

const frame = (delta: object, reason: string | null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
const named = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

const ANSWERS: Readonly<Record<Dialect, string>> = {
  openai: `${frame({ content: 'Noon.' }, null)}${frame({}, 'stop')}data: [DONE]\n\n`,
  anthropic: [
    named('message_start', { message: { usage: { input_tokens: 1, output_tokens: 1 } } }),
    named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Noon.' } }),
    named('content_block_stop', { index: 0 }),
    named('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }),
    named('message_stop', {}),
  ].join(''),
};

test.each(['openai', 'anthropic'] as const)(
  'an answer of the dialect %s is complete with its last event; the connection is kept',
  async (dialect) => {
    const open: ServerResponse[] = [];
    const sockets = new Set<unknown>();
    await using server = await startServer((response, { socket }) => {
      open.push(response);
      sockets.add(socket);
      response.write(ANSWERS[dialect]);
    });
    const { port } = new URL(server.apiBase);
    for (let call = 1; call <= 2; call += 1) {
      const events = await collect(askAt(server.apiBase, dialect));
      expect(events.at(-1)).toMatchObject({ type: 'finished', text: 'Noon.', stop: 'end' });
      open.at(-1)?.end(': nothing more\n\n');
      await expect.poll(() => Object.keys(globalAgent.freeSockets)).toContain(`127.0.0.1:${port}:`);
    }
    expect(open).toHaveLength(2);
    expect(sockets.size).toBe(1);
  },
);

test('an answer that nobody reads on is ended at the server', async () => {
  const gone = Promise.withResolvers<void>();
  await using server = await startServer((response) => {
    const speaking = setInterval(() => response.write(frame({ content: 'Noon' }, null)), 10);
    response.once('close', () => {
      clearInterval(speaking);
      gone.resolve();
    });
  });
  for await (const event of askAt(server.apiBase, 'openai')) {
    if (event.type === 'text') break;
  }
  await gone.promise;
});
