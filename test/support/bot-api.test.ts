// The simulator is only worth what it refuses.

import { describe, expect, test } from 'vitest';
import { startBotApi } from './bot-api.ts';
import type { BotApi } from './bot-api-contract.ts';
import { parseHtml } from './bot-api-html.ts';

async function call(api: BotApi, method: string, payload: object = {}, token = api.token) {
  const response = await fetch(`${api.apiRoot}/bot${token}/${method}`, {
    method: 'POST',
    body: JSON.stringify(payload),
  });
  return (await response.json()) as {
    readonly ok: boolean;
    readonly result?: unknown;
    readonly error_code?: number;
    readonly description?: string;
    readonly parameters?: object;
  };
}

describe('the simulated Bot API', () => {
  test('gives an update again until a later offset confirms it', async () => {
    await using api = await startBotApi();
    const { update_id } = api.say(1, 'hello');
    expect((await call(api, 'getUpdates')).result).toHaveLength(1);
    expect((await call(api, 'getUpdates', { offset: update_id })).result).toHaveLength(1);
    expect((await call(api, 'getUpdates', { offset: update_id + 1 })).result).toHaveLength(0);
    expect((await call(api, 'getUpdates')).result).toHaveLength(0);
  });

  test('ends the older of two polls with 409', async () => {
    await using api = await startBotApi();
    const older = call(api, 'getUpdates', { timeout: 20 });
    await api.waitFor(() => api.calls.length === 1);
    const newer = call(api, 'getUpdates', { timeout: 20 });
    expect(await older).toMatchObject({ ok: false, error_code: 409 });
    api.say(1, 'for the newer');
    expect((await newer).result).toHaveLength(1);
  });

  test('refuses a foreign token, unknown chats, blocks, empty and long texts', async () => {
    await using api = await startBotApi();
    api.chat(1);
    api.chat(2);
    api.block(2);
    const send = (chat_id: number, text: string) => call(api, 'sendMessage', { chat_id, text });
    expect((await call(api, 'getMe', {}, '1:other')).error_code).toBe(401);
    expect((await send(3, 'x')).description).toBe('Bad Request: chat not found');
    expect((await send(2, 'x')).error_code).toBe(403);
    expect((await send(1, ' \n')).description).toBe('Bad Request: message text is empty');
    expect((await send(1, 'x'.repeat(4097))).description).toBe('Bad Request: message is too long');
    expect((await send(1, 'x'.repeat(4096))).ok).toBe(true);
  });

  test('tells an edit that changes nothing from one that changes', async () => {
    await using api = await startBotApi();
    api.chat(1);
    await call(api, 'sendMessage', { chat_id: 1, text: 'a' });
    const message_id = api.chat(1).messages[0]?.id;
    const edit = (text: string) => call(api, 'editMessageText', { chat_id: 1, message_id, text });
    expect((await edit('a')).description).toMatch('message is not modified');
    expect((await edit('b')).ok).toBe(true);
    expect(api.chat(1).messages[0]).toMatchObject({ text: 'b', edits: 1 });
  });

  test('limits a chat’s rate where asked to', async () => {
    await using api = await startBotApi({ perChatPerSecond: 1 });
    api.chat(1);
    await call(api, 'sendMessage', { chat_id: 1, text: 'a' });
    const second = await call(api, 'sendMessage', { chat_id: 1, text: 'b' });
    expect(second).toMatchObject({ error_code: 429, parameters: { retry_after: 1 } });
  });

  test('notes unknown methods and parameters as violations', async () => {
    await using api = await startBotApi();
    expect((await call(api, 'sendTelepathy')).error_code).toBe(404);
    await call(api, 'getMe', { verbose: true });
    expect(api.violations).toEqual([
      'unknown method sendTelepathy',
      'unknown parameter getMe.verbose',
    ]);
  });

  test.each([
    ['<b>x', 'end tag corresponding to start tag "b"'],
    ['x</b>', 'Unexpected end tag at byte offset 1'],
    ['<b><i>x</b></i>', 'Unmatched end tag at byte offset 7'],
    ['é<think>x</think>', 'Unsupported start tag "think" at byte offset 2'],
    ['<b', 'Unclosed start tag'],
    ['a < b>c', 'Unsupported start tag ""'],
  ])('refuses the body %j as Telegram does', (html, words) => {
    const parsed = parseHtml(html);
    expect(parsed).toMatchObject({ ok: false, description: expect.stringContaining(words) });
  });

  test.each([
    ['a & b', 'not escaped'],
    ['<code><b>x</b></code>', 'inside code'],
    ['<blockquote><blockquote>x</blockquote></blockquote>', 'blockquote inside'],
  ])('notes the breach in %j', (html, words) => {
    expect(parseHtml(html)).toMatchObject({ breaches: [expect.stringContaining(words)] });
  });

  test('counts visible text, not tags', () => {
    expect(parseHtml('<b>a</b> &lt;&#128512;')).toMatchObject({
      text: 'a <😀',
      entities: [{ type: 'bold', offset: 0, length: 1 }],
    });
  });
});
