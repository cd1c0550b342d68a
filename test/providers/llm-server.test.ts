import { expect, test } from 'vitest';
import { callTools, echo, fail, say, startLlmServer } from '../support/llm-server.ts';

const post = (url: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...headers },
    body: JSON.stringify(body),
  });

const hello = { model: 'm', messages: [{ role: 'user', content: 'Hello nonce-abc1' }] };

test('the simulator answers both dialects and records what was asked', async () => {
  await using server = await startLlmServer({ respond: echo });
  const openai = await post(`${server.openaiBase}/chat/completions`, hello);
  expect(await openai.json()).toMatchObject({
    choices: [{ message: { content: 'nonce-abc1' }, finish_reason: 'stop' }],
  });
  const anthropic = await post(`${server.url}/v1/messages`, { ...hello, max_tokens: 5 });
  expect(await anthropic.json()).toMatchObject({ content: [{ text: 'nonce-abc1' }] });
  const streamed = await post(`${server.openaiBase}/chat/completions`, { ...hello, stream: true });
  expect(await streamed.text()).toMatch(/nonce-abc1[\s\S]*finish_reason":"stop[\s\S]*\[DONE\]/);
  expect(server.requests.map((request) => request.dialect)).toEqual([
    'openai',
    'anthropic',
    'openai',
  ]);
  server.assertDone();
});

test('the simulator refuses mispaired tools, unscripted calls and left-over script', async () => {
  await using server = await startLlmServer();
  const orphan = { role: 'tool', content: 'x', tool_call_id: 'call_9' };
  const mispaired = { ...hello, messages: [...hello.messages, orphan] };
  expect((await post(`${server.openaiBase}/chat/completions`, mispaired)).status).toBe(400);
  expect((await post(`${server.openaiBase}/chat/completions`, hello)).status).toBe(418);
  expect(() => server.assertDone()).toThrow(/must follow tool_calls.*unscripted/);
  server.takeComplaints();
  server.script(say('one'), callTools({ name: 'time', arguments: {} }), fail(429));
  await post(`${server.openaiBase}/chat/completions`, hello);
  expect(() => server.assertDone()).toThrow(/2 scripted replies/);
});
