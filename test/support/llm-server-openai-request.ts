// Reads an OpenAI chat completions request as strictly as the strictest vendor of the dialect: every
// rule here is one that some service really enforces with a 400.

import type { Dialect, SentImage } from './llm-server-reply.ts';
import {
  distinct,
  type Json,
  list,
  object,
  onlyKeys,
  pairing,
  positiveInteger,
  refuseUnless,
  sentImage,
  text,
  toolName,
} from './llm-server-strict.ts';
import { withoutTimes } from './without-times.ts';

const PARAMETERS = [
  'model',
  'messages',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'reasoning_effort',
  'reasoning',
  'stream',
  'stream_options',
  'thinking',
  'prompt_cache_key',
  'chat_template_kwargs',
];
const MESSAGE_KEYS: Readonly<Record<string, readonly string[]>> = {
  system: ['role', 'content'],
  user: ['role', 'content'],
  assistant: ['role', 'content', 'tool_calls', 'reasoning_content'],
  tool: ['role', 'content', 'tool_call_id'],
};
const MAX_CALL_ID_CHARS = 40;

function contentText(value: unknown, where: string, withImages = false): string {
  if (typeof value === 'string') return value;
  return list(value, where)
    .map((part) => {
      const block = object(part, where);
      if (withImages && block['type'] === 'image_url') {
        imageOf(block, where);
        return '';
      }
      onlyKeys(block, ['type', 'text', 'cache_control'], where);
      refuseUnless(block['type'] === 'text', `${where}: only text parts here`);
      return text(block['text'], where);
    })
    .join('');
}

const DATA_URL = /^data:([\w/+.-]+);base64,(.*)$/s;

function imageOf(block: Json, where: string): SentImage {
  onlyKeys(block, ['type', 'image_url'], where);
  const image = object(block['image_url'], `${where}.image_url`);
  onlyKeys(image, ['url', 'detail'], `${where}.image_url`);
  const [, type, data] = DATA_URL.exec(text(image['url'], `${where}.image_url.url`)) ?? [];
  return sentImage(type, data, where);
}

function imagesOf(messages: readonly Json[]): readonly SentImage[] {
  return messages
    .filter((message) => message['role'] === 'user' && Array.isArray(message['content']))
    .flatMap((message) => list(message['content'], 'content'))
    .map((part) => object(part, 'part'))
    .filter((part) => part['type'] === 'image_url')
    .map((part) => imageOf(part, 'content'));
}

function readCalls(message: Json, where: string): readonly string[] {
  if (message['tool_calls'] === undefined) {
    const said = contentText(message['content'], `${where}.content`);
    refuseUnless(said !== '', `${where}: an assistant message needs content or tool_calls`);
    return [];
  }
  const calls = list(message['tool_calls'], `${where}.tool_calls`);
  refuseUnless(calls.length > 0, `${where}.tool_calls: must not be empty`);
  const ids = calls.map((value, index) => readCall(value, `${where}.tool_calls[${index}]`));
  distinct(ids, where);
  return ids;
}

function readCall(value: unknown, where: string): string {
  const call = object(value, where);
  onlyKeys(call, ['id', 'type', 'function', 'extra_content'], where);
  const id = text(call['id'], `${where}.id`);
  refuseUnless(id !== '' && id.length <= MAX_CALL_ID_CHARS, `${where}.id: 1 to 40 characters`);
  refuseUnless(call['type'] === 'function', `${where}.type: expected 'function'`);
  const fn = object(call['function'], `${where}.function`);
  onlyKeys(fn, ['name', 'arguments'], `${where}.function`);
  toolName(fn['name'], `${where}.function.name`);
  const raw = text(fn['arguments'], `${where}.function.arguments`);
  refuseUnless(isJsonObject(raw), `${where}.function.arguments: not a JSON object`);
  return id;
}

function isJsonObject(raw: string): boolean {
  try {
    const value: unknown = JSON.parse(raw);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

function readMessages(value: unknown): readonly Json[] {
  const messages = list(value, 'messages').map((item, i) => object(item, `messages[${i}]`));
  let open: { readonly calls: readonly string[]; readonly results: string[] } | undefined;
  let seenOther = false;
  messages.forEach((message, index) => {
    const where = `messages[${index}]`;
    const role = text(message['role'], `${where}.role`);
    const keys = MESSAGE_KEYS[role];
    refuseUnless(keys !== undefined, `${where}.role: unknown role '${role}'`);
    onlyKeys(message, keys, where);
    if (role === 'tool') {
      refuseUnless(open !== undefined, `${where}: a tool message must follow tool_calls`);
      contentText(message['content'], where);
      open.results.push(text(message['tool_call_id'], `${where}.tool_call_id`));
      return;
    }
    if (open !== undefined) pairing(open.calls, open.results, where);
    open = undefined;
    if (role === 'system') {
      refuseUnless(!seenOther, `${where}: system messages stand first`);
      return;
    }
    refuseUnless(seenOther || role === 'user', `${where}: the conversation starts with a user`);
    seenOther = true;
    if (role === 'user') {
      const said = contentText(message['content'], where, true);
      refuseUnless(said !== '', `${where}: empty user message`);
      return;
    }
    refuseUnless(messages[index - 1]?.['role'] !== 'assistant', `${where}: two answers in a row`);
    const calls = readCalls(message, where);
    if (calls.length > 0) open = { calls, results: [] };
  });
  if (open !== undefined) pairing(open.calls, open.results, 'messages');
  const last = messages.at(-1)?.['role'];
  refuseUnless(last === 'user' || last === 'tool', 'messages: must end with user or tool');
  return messages;
}

function readTools(value: unknown): readonly string[] {
  if (value === undefined) return [];
  const tools = list(value, 'tools');
  refuseUnless(tools.length > 0, 'tools: must not be empty');
  const names = tools.map((item, index) => {
    const where = `tools[${index}]`;
    const tool = object(item, where);
    onlyKeys(tool, ['type', 'function', 'cache_control'], where);
    const fn = object(tool['function'], `${where}.function`);
    onlyKeys(fn, ['name', 'description', 'parameters', 'strict'], `${where}.function`);
    const schema = object(fn['parameters'], `${where}.function.parameters`);
    refuseUnless(schema['type'] === 'object', `${where}: the schema must describe an object`);
    return toolName(fn['name'], `${where}.function.name`);
  });
  distinct(names, 'tools');
  return names;
}

export function readOpenaiRequest(body: Json): ReturnType<Dialect['read']> {
  onlyKeys(body, PARAMETERS, 'body');
  const model = text(body['model'], 'model');
  const limits = ['max_tokens', 'max_completion_tokens'].filter((key) => body[key] !== undefined);
  refuseUnless(limits.length <= 1, 'max_tokens and max_completion_tokens exclude each other');
  for (const key of limits) positiveInteger(body[key], key);
  const stream = body['stream'] === true;
  if (body['stream_options'] !== undefined) {
    refuseUnless(stream, 'stream_options: only with stream');
    onlyKeys(object(body['stream_options'], 'stream_options'), ['include_usage'], 'stream_options');
  }
  const messages = readMessages(body['messages']);
  const tail = messages.slice(messages.findLastIndex((m) => m['role'] === 'assistant') + 1);
  const contentOf = (role: string, among: readonly Json[]) =>
    among.filter((m) => m['role'] === role).map((m) => contentText(m['content'], role, true));
  return {
    dialect: 'openai',
    model,
    stream,
    system: contentOf('system', messages).join('\n'),
    lastUserText: withoutTimes(contentOf('user', tail).join('\n')),
    toolResults: tail
      .filter((m) => m['role'] === 'tool')
      .map((m) => ({ callId: String(m['tool_call_id']), text: contentText(m['content'], 'tool') })),
    tools: readTools(body['tools']),
    images: imagesOf(messages),
  };
}
