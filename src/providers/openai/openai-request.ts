// Renders a ModelRequest as the body of an OpenAI chat completions call. Pure: the whole prompt goes
// in, and what goes out depends on the vendor's row alone.

import { createHash } from 'node:crypto';
import type {
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
  ChatCompletionTool,
} from 'openai/resources/chat/completions';
import { argumentsObject, unsealed, type WireMessage, wireMessages } from '../completion.ts';
import type { ModelRequest } from '../provider.ts';
import { imageLabel, NO_IMAGES, type ShownImages } from '../seen-images.ts';
import type { Quirks } from '../vendors.ts';

type AssistantMessage = Extract<WireMessage, { role: 'assistant' }>;

/** Google's documented stand-in for the signature of a call that some other model made. */
const NO_SIGNATURE = 'skip_thought_signature_validator';
const OF_TOOLS = '[shown by the tools above]';
const CACHE_MARK = { cache_control: { type: 'ephemeral' } } as const;

export function openaiRequest(
  request: ModelRequest,
  quirks: Quirks,
  shown: ShownImages = NO_IMAGES,
): ChatCompletionCreateParamsStreaming {
  const { thinkingBudget = 0, temperature } = request;
  const limitField = quirks.maxTokensField ?? 'max_tokens';
  const sampled =
    temperature !== undefined && quirks.fixedTemperature?.test(request.model) !== true;
  return {
    model: request.model,
    messages: [
      ...systemMessages(request, quirks),
      ...withImagesOfTools(wireMessages(request.messages)).map((message) =>
        wire(message, { model: request.model, quirks, shown }),
      ),
    ],
    stream: true,
    [limitField]: request.maxTokens + thinkingBudget,
    ...(quirks.noUsageOption === true ? {} : { stream_options: { include_usage: true } }),
    ...(sampled ? { temperature } : {}),
    ...(request.tools.length === 0 ? {} : toolFields(request)),
    ...quirks.extras?.(request),
  };
}

/** Brings the calls of a conversation to the machine that has its beginning in its cache. */
export function cacheKeyField({ conversation }: ModelRequest) {
  if (conversation === undefined) return {};
  return { prompt_cache_key: createHash('sha256').update(conversation).digest('hex').slice(0, 32) };
}

function toolFields(request: ModelRequest) {
  const tools = request.tools.map(wireTool);
  return request.toolChoice === undefined ? { tools } : { tools, tool_choice: request.toolChoice };
}

function systemMessages(request: ModelRequest, quirks: Quirks): ChatCompletionMessageParam[] {
  const parts = request.system.filter((part) => part.text.trim() !== '');
  if (parts.length === 0) return [];
  if (quirks.cacheMarksFor?.test(request.model) !== true) {
    return [{ role: 'system', content: parts.map((part) => part.text).join('\n\n') }];
  }
  const lastStable = parts.findLastIndex((part) => part.stable);
  const content = parts.map((part, index) => ({
    type: 'text' as const,
    text: part.text,
    ...(index === lastStable ? CACHE_MARK : {}),
  }));
  return [{ role: 'system', content }];
}

/** Results are text only in this dialect: their images follow as if the person had sent them. */
function withImagesOfTools(messages: readonly WireMessage[]): readonly WireMessage[] {
  return messages.flatMap((message, index): WireMessage[] => {
    if (message.role === 'assistant') return [message];
    const isLastResult = message.role === 'tool' && messages[index + 1]?.role !== 'tool';
    if (!isLastResult) return [message];
    const begin = messages.findLastIndex(({ role }, at) => at < index && role !== 'tool') + 1;
    const images = messages
      .slice(begin, index + 1)
      .flatMap((result) => (result.role === 'tool' ? (result.images ?? []) : []));
    if (images.length === 0) return [message];
    return [message, { role: 'user', text: OF_TOOLS, images }];
  });
}

type Dialect = { readonly model: string; readonly quirks: Quirks; readonly shown: ShownImages };

function userContent(message: Extract<WireMessage, { role: 'user' }>, shown: ShownImages) {
  const { images = [], note = '' } = message;
  const text = [message.text, note].filter((part) => part.trim() !== '').join('\n\n');
  const parts = images.flatMap((image) => {
    const found = shown.get(image.media);
    if (found === undefined) return [];
    const url = `data:${found.mimeType};base64,${found.base64}`;
    return [
      { type: 'text' as const, text: imageLabel(image) },
      { type: 'image_url' as const, image_url: { url } },
    ];
  });
  if (parts.length === 0) return text;
  return text.trim() === '' ? parts : [...parts, { type: 'text' as const, text }];
}

function wire(message: WireMessage, dialect: Dialect): ChatCompletionMessageParam {
  const { model, quirks, shown } = dialect;
  if (message.role === 'user') return { role: 'user', content: userContent(message, shown) };
  if (message.role === 'tool') {
    return { role: 'tool', tool_call_id: message.callId, content: message.text };
  }
  if (message.toolCalls.length === 0) return { role: 'assistant', content: message.text };
  const reasoning = message.thinking.map((block) => block.text).join('');
  return {
    role: 'assistant',
    content: message.text,
    tool_calls: message.toolCalls.map((call) => ({
      id: call.id,
      type: 'function' as const,
      function: { name: call.name, arguments: argumentsText(call.arguments) },
      ...(quirks.signsToolCalls === true ? signature(message, call.id, model) : {}),
    })),
    ...(quirks.echoesReasoning === true ? { reasoning_content: reasoning } : {}),
  };
}

/** Verbatim where it is what vendors accept, so that their prompt caches still match. */
function argumentsText(raw: string): string {
  const value = argumentsObject(raw);
  return 'malformed_arguments' in value || raw.trim() === '' ? JSON.stringify(value) : raw;
}

function signature(message: AssistantMessage, callId: string, model: string) {
  const own = message.thinking
    .map((block) => unsealed(block, `${model}#${callId}`))
    .find((found) => found !== undefined);
  return { extra_content: { google: { thought_signature: own ?? NO_SIGNATURE } } };
}

const wireTool = (tool: ModelRequest['tools'][number]): ChatCompletionTool => ({
  type: 'function',
  function: { name: tool.name, description: tool.description, parameters: { ...tool.schema } },
});
