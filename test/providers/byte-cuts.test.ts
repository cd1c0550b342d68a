// A stream may be cut anywhere, also inside a character of several bytes or inside an escape.

import { describe, expect, test } from 'vitest';
import { campaign } from '../support/campaign.ts';
import { type LlmReply, startLlmServer } from '../support/llm-server.ts';
import { ask, finish, simulated, timeTool } from './provider-setup.ts';

const TEXT = ['Grüße 你 👩‍👧'];
const REPLY: LlmReply = {
  chunks: TEXT,
  toolCalls: [{ name: 'time', arguments: { zone: 'Zürich' } }],
};
const PARALLEL_REQUESTS = 8;
/** Coprime to the length of a character, so that a short campaign cuts inside each kind too. */
const STEP = campaign({ short: 5, full: 1 });

describe.each(['openai', 'anthropic'] as const)('%s dialect', (dialect) => {
  test('a stream cut at any byte gives the same answer', async () => {
    await using server = await startLlmServer();
    const handle = simulated(dialect, server);
    const request = ask('hello', { tools: [timeTool] });
    const bytes = await streamLength(server.url, dialect);
    let cutAt = 1;
    server.respond(() => {
      const reply = { ...REPLY, cutAt };
      cutAt += STEP;
      return reply;
    });
    async function askUntilDone() {
      while (cutAt < bytes) {
        const { text, toolCalls } = await finish(handle, request);
        expect(text).toBe(TEXT.join(''));
        expect(JSON.parse(toolCalls[0]?.arguments ?? '')).toEqual({ zone: 'Zürich' });
      }
    }
    await Promise.all(Array.from({ length: PARALLEL_REQUESTS }, askUntilDone));
    expect(server.requests.length).toBeGreaterThanOrEqual(Math.floor((bytes - 1) / STEP));
    server.assertDone();

    async function streamLength(url: string, of: typeof dialect): Promise<number> {
      server.script(REPLY);
      const path = of === 'openai' ? '/v1/chat/completions' : '/v1/messages';
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'anthropic-version': '2023-06-01' },
        body: JSON.stringify({
          model: dialect === 'openai' ? 'sim-1' : 'claude-sonnet-4-5',
          max_tokens: 5,
          stream: true,
          messages: [{ role: 'user', content: 'hello' }],
        }),
      });
      return (await response.arrayBuffer()).byteLength;
    }
  });

  test('a piece is there while the server still writes', async () => {
    await using server = await startLlmServer();
    server.script({ chunks: ['Hello'], fault: { kind: 'stall' } });
    const stop = new AbortController();
    const events = simulated(dialect, server).stream(ask('hello'), stop.signal);
    for await (const event of events) {
      expect(event).toEqual({ type: 'text', delta: 'Hello' });
      break;
    }
    stop.abort();
    const [request] = server.requests;
    await request?.abandoned;
  });

  test('a stream that comes byte by byte gives the same answer', async () => {
    await using server = await startLlmServer();
    server.script({ ...REPLY, cutAt: 'every' });
    const { text } = await finish(simulated(dialect, server), ask('hello', { tools: [timeTool] }));
    expect(text).toBe(TEXT.join(''));
  });
});
