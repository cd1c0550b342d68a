// Reads an Anthropic Messages request as strictly as the service: alternating roles, every tool_use
// answered at once, thinking blocks signed and first, temperature 1 with thinking.

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
  'system',
  'max_tokens',
  'tools',
  'tool_choice',
  'temperature',
  'stream',
  'thinking',
  'output_config',
];
const BLOCK_KEYS: Readonly<Record<string, readonly string[]>> = {
  text: ['type', 'text', 'cache_control'],
  image: ['type', 'source', 'cache_control'],
  thinking: ['type', 'thinking', 'signature'],
  redacted_thinking: ['type', 'data'],
  tool_use: ['type', 'id', 'name', 'input', 'cache_control'],
  tool_result: ['type', 'tool_use_id', 'content', 'is_error', 'cache_control'],
};
const ALLOWED_IN: Readonly<Record<string, readonly string[]>> = {
  user: ['text', 'image', 'tool_result'],
  assistant: ['text', 'thinking', 'redacted_thinking', 'tool_use'],
};
const CALL_ID = /^[a-zA-Z0-9_-]+$/;
const MAX_CACHE_MARKS = 4;
const MIN_THINKING_TOKENS = 1024;

type Message = { readonly role: string; readonly blocks: readonly Json[] };

function readBlocks(value: unknown, role: string, where: string): readonly Json[] {
  if (typeof value === 'string') {
    refuseUnless(value.trim() !== '', `${where}: text content must be non-empty`);
    return [{ type: 'text', text: value }];
  }
  const blocks = list(value, where).map((item, index) => {
    const block = object(item, `${where}[${index}]`);
    const type = text(block['type'], `${where}[${index}].type`);
    refuseUnless(ALLOWED_IN[role]?.includes(type) === true, `${where}[${index}]: no ${type} here`);
    onlyKeys(block, BLOCK_KEYS[type] ?? [], `${where}[${index}]`);
    checkBlock(block, type, `${where}[${index}]`);
    return block;
  });
  refuseUnless(blocks.length > 0, `${where}: must not be empty`);
  return blocks;
}

function checkBlock(block: Json, type: string, where: string): void {
  if (type === 'text') {
    refuseUnless(text(block['text'], where).trim() !== '', `${where}: text must be non-empty`);
  }
  if (type === 'image') imageOf(block, where);
  if (type === 'thinking') {
    refuseUnless(text(block['signature'], where) !== '', `${where}.signature: required`);
  }
  if (type === 'tool_use') {
    toolName(block['name'], `${where}.name`);
    object(block['input'], `${where}.input`);
    refuseUnless(CALL_ID.test(text(block['id'], where)), `${where}.id: bad characters`);
  }
}

/** Of five minutes, on blocks that may have one: thinking and its parts may not (BLOCK_KEYS). */
function checkMarks(blocks: readonly Json[]): void {
  for (const { cache_control } of blocks) {
    if (cache_control === undefined) continue;
    const mark = object(cache_control, 'cache_control');
    onlyKeys(mark, ['type', 'ttl'], 'cache_control');
    refuseUnless(mark['type'] === 'ephemeral', 'cache_control.type: expected ephemeral');
    refuseUnless(['5m', undefined].includes(mark['ttl'] as undefined), 'cache_control.ttl: not 5m');
  }
}

function imageOf(block: Json, where: string): SentImage {
  const source = object(block['source'], `${where}.source`);
  onlyKeys(source, ['type', 'media_type', 'data'], `${where}.source`);
  refuseUnless(source['type'] === 'base64', `${where}.source.type: expected base64`);
  return sentImage(source['media_type'], source['data'], where);
}

function imagesOf(blocks: readonly Json[]): readonly SentImage[] {
  return blocks.flatMap((block) => {
    if (block['type'] === 'image') return [imageOf(block, 'image')];
    const { content } = block;
    return block['type'] === 'tool_result' && Array.isArray(content)
      ? imagesOf(content.map((part) => object(part, 'part')))
      : [];
  });
}

const idsOf = (blocks: readonly Json[], type: string, key: string) =>
  blocks.filter((block) => block['type'] === type).map((block) => String(block[key]));

function checkOrder(messages: readonly Message[], thinking: boolean): void {
  refuseUnless(messages.length > 0, 'messages: at least one message is required');
  refuseUnless(messages[0]?.role === 'user', 'messages.0: first message must use the user role');
  refuseUnless(messages.at(-1)?.role === 'user', 'messages: must end with a user message');
  const seen: string[] = [];
  messages.forEach((message, index) => {
    const where = `messages.${index}`;
    const before = messages[index - 1];
    refuseUnless(before?.role !== message.role, `${where}: roles must alternate`);
    if (message.role === 'user') {
      const calls = before === undefined ? [] : idsOf(before.blocks, 'tool_use', 'id');
      pairing(calls, idsOf(message.blocks, 'tool_result', 'tool_use_id'), where);
      const types = message.blocks.map((block) => block['type']);
      const firstText = types.findIndex((type) => type !== 'tool_result');
      refuseUnless(
        firstText < 0 || types.lastIndexOf('tool_result') < firstText,
        `${where}: tool_result blocks must come first`,
      );
      return;
    }
    seen.push(...idsOf(message.blocks, 'tool_use', 'id'));
    const types = message.blocks.map((block) => String(block['type']));
    refuseUnless(
      types.lastIndexOf('thinking') <= types.findLastIndex((t) => t.includes('thinking')) &&
        !types.slice(types.findIndex((t) => !t.includes('thinking'))).includes('thinking'),
      `${where}: thinking comes first`,
    );
    const inToolRound = index === messages.length - 2 && types.includes('tool_use');
    refuseUnless(
      !thinking || !inToolRound || String(types[0]).includes('thinking'),
      `${where}: Expected \`thinking\` or \`redacted_thinking\`, but found \`${types[0]}\``,
    );
  });
  distinct(seen, 'messages: `tool_use` ids must be unique');
}

function readTools(value: unknown): readonly string[] {
  if (value === undefined) return [];
  const names = list(value, 'tools').map((item, index) => {
    const tool = object(item, `tools.${index}`);
    onlyKeys(tool, ['name', 'description', 'input_schema', 'cache_control'], `tools.${index}`);
    const schema = object(tool['input_schema'], `tools.${index}.input_schema`);
    refuseUnless(schema['type'] === 'object', `tools.${index}.input_schema.type: expected object`);
    return toolName(tool['name'], `tools.${index}.name`);
  });
  distinct(names, 'tools');
  return names;
}

function checkThinking(body: Json): boolean {
  const maxTokens = positiveInteger(body['max_tokens'], 'max_tokens');
  if (body['thinking'] === undefined) return false;
  const thinking = object(body['thinking'], 'thinking');
  const warm = body['temperature'] === undefined || body['temperature'] === 1;
  refuseUnless(warm, '`temperature` may only be set to 1 when thinking is enabled');
  if (thinking['type'] === 'adaptive') return true;
  refuseUnless(thinking['type'] === 'enabled', 'thinking.type: unknown');
  onlyKeys(thinking, ['type', 'budget_tokens'], 'thinking');
  const budget = positiveInteger(thinking['budget_tokens'], 'thinking.budget_tokens');
  refuseUnless(budget >= MIN_THINKING_TOKENS, 'thinking.budget_tokens: must be >= 1024');
  refuseUnless(budget < maxTokens, '`max_tokens` must be greater than `thinking.budget_tokens`');
  return true;
}

function resultText(content: unknown): string {
  if (content === undefined || typeof content === 'string') return content ?? '';
  return list(content, 'tool_result.content')
    .map((part) => object(part, 'part'))
    .map((part) => (part['type'] === 'image' ? '' : text(part['text'], 'part.text')))
    .join('');
}

export function readAnthropicRequest(body: Json): ReturnType<Dialect['read']> {
  onlyKeys(body, PARAMETERS, 'body');
  const thinking = checkThinking(body);
  const messages = list(body['messages'], 'messages').map((item, index): Message => {
    const message = object(item, `messages.${index}`);
    onlyKeys(message, ['role', 'content'], `messages.${index}`);
    const role = text(message['role'], `messages.${index}.role`);
    refuseUnless(role in ALLOWED_IN, `messages.${index}.role: unexpected '${role}'`);
    return { role, blocks: readBlocks(message['content'], role, `messages.${index}.content`) };
  });
  checkOrder(messages, thinking);
  const system = body['system'] === undefined ? [] : readBlocks(body['system'], 'user', 'system');
  checkMarks([
    ...list(body['tools'] ?? [], 'tools').map((tool) => object(tool, 'tool')),
    ...system,
  ]);
  checkMarks(messages.flatMap(({ blocks }) => blocks));
  const marks = JSON.stringify(body).split('"cache_control":').length - 1;
  refuseUnless(marks <= MAX_CACHE_MARKS, `at most ${MAX_CACHE_MARKS} blocks with cache_control`);
  const last = messages.at(-1)?.blocks ?? [];
  return {
    dialect: 'anthropic',
    model: text(body['model'], 'model'),
    stream: body['stream'] === true,
    system: system.map((block) => String(block['text'])).join('\n'),
    lastUserText: withoutTimes(idsOf(last, 'text', 'text').join('\n')),
    toolResults: last
      .filter((block) => block['type'] === 'tool_result')
      .map((block) => ({
        callId: String(block['tool_use_id']),
        text: resultText(block['content']),
      })),
    tools: readTools(body['tools']),
    images: imagesOf(messages.flatMap(({ blocks }) => blocks)),
  };
}
