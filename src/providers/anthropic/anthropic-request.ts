// Renders a ModelRequest as the body of an Anthropic Messages call: cache marks after the tools,
// the stable part of the system prompt and in the conversation; thinking with its signatures; tool
// results before text.

import type {
  ContentBlockParam,
  ImageBlockParam,
  MessageCreateParamsStreaming,
  MessageParam,
  TextBlockParam,
  Tool,
} from '@anthropic-ai/sdk/resources/messages';
import type { AttachedMedia } from '../../kernel/message/attachment.ts';
import { argumentsObject, unsealed, type WireMessage, wireMessages } from '../completion.ts';
import type { ModelRequest } from '../provider.ts';
import { imageLabel, NO_IMAGES, type ShownImages } from '../seen-images.ts';
import { claudeTraits, effortOf } from '../vendors.ts';

/** Smallest budget that the service accepts. */
const MIN_THINKING_TOKENS = 1024;

type RequestOptions = {
  /** Default: the thinking of earlier calls is sent along. */
  readonly withThinking?: boolean;
  readonly shown?: ShownImages;
};

export function anthropicRequest(
  request: ModelRequest,
  options: RequestOptions = {},
): MessageCreateParamsStreaming {
  const { withThinking = true, shown = NO_IMAGES } = options;
  const wire = wireMessages(request.messages);
  const built = messagesOf(wire, withThinking ? request.model : undefined, shown);
  const system = systemBlocks(request);
  const tools = request.tools.map((tool, index, all) => wireTool(tool, index === all.length - 1));
  return {
    model: request.model,
    stream: true,
    messages: threadMessages(built, request.conversation !== undefined),
    ...(system.length === 0 ? {} : { system }),
    ...(tools.length === 0 ? {} : { tools }),
    ...(tools.length > 0 && request.toolChoice === 'none'
      ? { tool_choice: { type: 'none' as const } }
      : {}),
    ...sampling(request, wire),
  };
}

/**
 * True when earlier thinking is sent along; if a service refuses it, the call can be repeated
 * without.
 */
export const sendsThinking = (body: MessageCreateParamsStreaming) =>
  body.messages.some(
    (message) =>
      typeof message.content !== 'string' &&
      message.content.some((block) => block.type.endsWith('thinking')),
  );

type Sampling = Pick<MessageCreateParamsStreaming, 'max_tokens' | 'thinking' | 'output_config'> & {
  /** Missing in the SDK's types; models before 4.7 still accept it. */
  readonly temperature?: number;
};

function sampling(request: ModelRequest, wire: readonly WireMessage[]): Sampling {
  const { maxTokens, temperature, thinkingBudget = 0, model } = request;
  const traits = claudeTraits(model);
  if (thinkingBudget > 0 && traits.thinking === 'adaptive') {
    const output_config = { effort: effortOf(thinkingBudget) };
    return {
      max_tokens: maxTokens + thinkingBudget,
      thinking: { type: 'adaptive' },
      output_config,
    };
  }
  if (thinkingBudget > 0 && !isForeignToolRound(wire, model)) {
    const budget_tokens = Math.max(MIN_THINKING_TOKENS, thinkingBudget);
    return {
      max_tokens: maxTokens + budget_tokens,
      thinking: { type: 'enabled', budget_tokens },
    };
  }
  const sampled = traits.sampling && temperature !== undefined;
  return { max_tokens: maxTokens, ...(sampled ? { temperature: Math.min(1, temperature) } : {}) };
}

/**
 * Within a round of tool calls the service requires the thinking of that round; a round of another
 * model, or without thinking, can only continue without it.
 */
function isForeignToolRound(wire: readonly WireMessage[], model: string): boolean {
  const asked = wire.findLast((message) => message.role === 'assistant');
  if (asked?.role !== 'assistant' || asked.toolCalls.length === 0) return false;
  return !asked.thinking.some((block) => unsealed(block, model) !== undefined);
}

function systemBlocks(request: ModelRequest): TextBlockParam[] {
  const parts = request.system.filter((part) => part.text.trim() !== '');
  const lastStable = parts.findLastIndex((part) => part.stable);
  return parts.map((part, index) => ({
    type: 'text',
    text: part.text,
    ...(index === lastStable ? CACHE_MARK : {}),
  }));
}

const hasThinkingOf = (message: WireMessage, model: string | undefined) =>
  model !== undefined &&
  message.role === 'assistant' &&
  message.thinking.some((block) => unsealed(block, model) !== undefined);

function messagesOf(
  wire: readonly WireMessage[],
  model: string | undefined,
  shown: ShownImages,
): BuiltMessage[] {
  const messages: BuiltMessage[] = [];
  const lastAsked = wire.findLastIndex(
    ({ role }, index) => role === 'user' && wire[index - 1]?.role !== 'tool',
  );
  wire.forEach((message, index) => {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const isUnderWay = index > lastAsked;
    const content = blocksOf(message, isUnderWay ? model : undefined, shown);
    const passing = message.role === 'user' && message.note !== undefined ? 1 : 0;
    const hasLostThinking = !isUnderWay && hasThinkingOf(message, model);
    const last = messages.at(-1);
    if (last?.role === role) {
      last.content.push(...content);
      last.passing = passing;
    } else messages.push({ role, content, passing, hasLostThinking });
  });
  return messages;
}

/** `model`: whose thinking is sent back; undefined outside of the current round. */
function blocksOf(
  message: WireMessage,
  model: string | undefined,
  shown: ShownImages,
): ContentBlockParam[] {
  if (message.role === 'user') {
    const { text, note = '' } = message;
    const texts = [text, note].filter((part) => part.trim() !== '').map(textBlock);
    return [...imageBlocks(message.images, shown), ...texts];
  }
  if (message.role === 'tool') {
    return [
      {
        type: 'tool_result',
        tool_use_id: message.callId,
        content: resultContent(message, shown),
        ...(message.failed ? { is_error: true } : {}),
      },
    ];
  }
  const thinking = model === undefined ? [] : message.thinking.flatMap((b) => thinkingOf(b, model));
  return [
    ...thinking,
    ...(message.text.trim() === '' ? [] : [{ type: 'text' as const, text: message.text }]),
    ...message.toolCalls.map((call) => ({
      type: 'tool_use' as const,
      id: call.id,
      name: call.name,
      input: argumentsObject(call.arguments),
    })),
  ];
}

const textBlock = (text: string): TextBlockParam => ({ type: 'text', text });

function imageBlocks(
  images: readonly AttachedMedia[] = [],
  shown: ShownImages,
): (TextBlockParam | ImageBlockParam)[] {
  return images.flatMap((image) => {
    const found = shown.get(image.media);
    if (found === undefined) return [];
    const source = { type: 'base64' as const, media_type: found.mimeType, data: found.base64 };
    return [textBlock(imageLabel(image)), { type: 'image' as const, source }];
  });
}

function resultContent(
  { text, images }: Extract<WireMessage, { role: 'tool' }>,
  shown: ShownImages,
) {
  const blocks = imageBlocks(images, shown);
  return blocks.length === 0 ? text : [textBlock(text), ...blocks];
}

/** Marks thinking that the service hid: its signature field holds the whole encrypted block. */
export const REDACTED = 'redacted:';

function thinkingOf(block: Parameters<typeof unsealed>[0], model: string): ContentBlockParam[] {
  const signature = unsealed(block, model);
  if (signature === undefined) return [];
  if (signature.startsWith(REDACTED)) {
    return [{ type: 'redacted_thinking', data: signature.slice(REDACTED.length) }];
  }
  return [{ type: 'thinking', thinking: block.text, signature }];
}

const wireTool = (tool: ModelRequest['tools'][number], isLast: boolean): Tool => ({
  name: tool.name,
  description: tool.description,
  input_schema: { type: 'object', ...tool.schema },
  ...(isLast ? CACHE_MARK : {}),
});

// Positions of the cache marks in an Anthropic call: the service reads what an earlier call wrote
// up to a mark, looks for it at most 20 blocks before a mark, and accepts 4 marks
// (platform.claude.com: prompt caching). Two are used for the tools and the system prompt.

/** Kept for five minutes from its last use (the default). */
export const CACHE_MARK = { cache_control: { type: 'ephemeral' } } as const;

type BuiltMessage = {
  readonly role: 'user' | 'assistant';
  readonly content: ContentBlockParam[];
  /** Blocks at its end that the next call will not repeat. */
  passing: number;
  /** It was sent with its thinking before, and is now sent without. */
  hasLostThinking: boolean;
};

/**
 * Marks the newest message, for the next call, and the end of the previous call. A call without a
 * continuation writes nothing to the cache, which would only cost more.
 */
function threadMessages(messages: readonly BuiltMessage[], goesOn: boolean): MessageParam[] {
  const marked = new Set(goesOn ? [messages.length - 1, endOfCallBefore(messages)] : []);
  return messages.map(({ role, content, passing }, index) => ({
    role,
    content: marked.has(index) ? withMark(content, content.length - 1 - passing) : content,
  }));
}

/**
 * Thinking is sent along during its round of tool calls. The first call of a turn therefore shares
 * with the previous turn only what precedes that turn's first thinking.
 */
function endOfCallBefore(messages: readonly BuiltMessage[]): number {
  const newest = messages.length - 1;
  if (hasResults(messages[newest])) return newest - 2;
  const asked = messages.findLastIndex(
    (message, index) => index < newest && message.role === 'user' && !hasResults(message),
  );
  const lost = messages.findIndex(({ hasLostThinking }, index) => index > asked && hasLostThinking);
  return lost === -1 ? newest - 2 : lost - 1;
}

const hasResults = (message: BuiltMessage | undefined) =>
  message?.content.some(({ type }) => type === 'tool_result') === true;

function withMark(content: readonly ContentBlockParam[], at: number): ContentBlockParam[] {
  return content.map((block, index) => {
    if (index !== at || block.type === 'thinking' || block.type === 'redacted_thinking') {
      return block;
    }
    return { ...block, ...CACHE_MARK };
  });
}
