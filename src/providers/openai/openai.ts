// The provider for vendors of the OpenAI dialect: one streamed call, its events as a completion,
// and thinking in tags separated from the answer.

import { hash } from 'node:crypto';
import type {
  ChatCompletionChunk,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
  ChatCompletionTool,
} from 'openai/resources/chat/completions';
import { rememberedFor } from '../../lib/async.ts';
import {
  argumentsObject,
  Completion,
  createCallIds,
  type MintCallId,
  sealed,
  unsealed,
  type WireMessage,
  wireMessages,
} from '../completion.ts';
import type { LLMProvider, ModelEvent, ModelRequest, StopReason } from '../provider.ts';
import { type ProviderDeps, type StreamReader, streamingProvider } from '../provider-call.ts';
import { imageLabel, NO_IMAGES, openShowing, type ShownImages } from '../seen-images.ts';
import type { Quirks } from '../vendors.ts';

const OPEN = '<think>';
const CLOSE = '</think>';

type Split = { readonly text: string; readonly thinking: string };

type State = 'start' | 'thinking' | 'gap' | 'text';

const thought = (thinking: string): Split => ({ text: '', thinking });
const said = (text: string): Split => ({ text, thinking: '' });

export function createThinkSplitter() {
  let state: State = 'start';
  let held = '';
  /** Blanks at the very beginning, before a possible tag. */
  let blanks = '';

  function push(delta: string): Split {
    if (state === 'text') return said(delta);
    held += delta;
    if (state === 'start') readStart();
    const thinking = state === 'thinking' ? readThinking() : '';
    return { text: state === 'start' ? '' : readText(), thinking };
  }

  function readStart() {
    const begun = held.trimStart();
    blanks += held.slice(0, held.length - begun.length);
    held = begun;
    if (OPEN.startsWith(begun)) return;
    state = begun.startsWith(OPEN) ? 'thinking' : 'text';
    if (state === 'thinking') held = begun.slice(OPEN.length);
    else held = blanks + begun;
  }

  function readThinking(): string {
    const end = held.indexOf(CLOSE);
    const upTo = end < 0 ? held.length - partialLength(held, CLOSE) : end;
    const thinking = held.slice(0, upTo);
    held = held.slice(end < 0 ? upTo : end + CLOSE.length);
    if (end >= 0) state = 'gap';
    return thinking;
  }

  /** The blank lines after the thinking are not part of the answer. */
  function readText(): string {
    if (state === 'thinking') return '';
    if (state === 'gap') held = held.trimStart();
    if (held !== '') state = 'text';
    const text = held;
    held = '';
    return text;
  }

  return {
    push,
    /** Text held back because it could become a tag. */
    flush(): Split {
      const rest = state === 'start' ? blanks + held : held;
      held = '';
      return state === 'thinking' ? thought(rest) : said(rest);
    },
  };
}

/** Length of the longest end of `text` that is a start of `tag`. */
function partialLength(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length -= 1) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}

// Reads the chunks of an OpenAI stream: text, reasoning under its several names, tool calls, usage.

type Delta = ChatCompletionChunk['choices'][number]['delta'] & {
  readonly reasoning_content?: string | null;
  readonly reasoning?: string | null;
};

const STOPS: Readonly<Record<string, StopReason>> = {
  stop: 'end',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  length: 'length',
  content_filter: 'refused',
};

class OpenaiReader implements StreamReader<ChatCompletionChunk> {
  readonly #model: string;
  readonly #completion = new Completion();
  readonly #toolCalls: ToolCallFragments;
  readonly #splitter: ReturnType<typeof createThinkSplitter> | undefined;
  #stop: StopReason | undefined;

  constructor(request: ModelRequest, quirks: Quirks) {
    this.#model = request.model;
    this.#toolCalls = new ToolCallFragments(request, this.#completion);
    this.#splitter = quirks.thinkTags === true ? createThinkSplitter() : undefined;
  }

  /** A finish reason was received; usage may still follow. */
  get ended(): boolean {
    return this.#stop !== undefined;
  }

  get overlong(): boolean {
    return this.#completion.overlong;
  }

  *push(chunk: ChatCompletionChunk): Generator<ModelEvent, void, void> {
    if (chunk.usage) this.#completion.usage(usageOf(chunk.usage));
    const choice = chunk.choices?.[0];
    if (choice === undefined) return;
    const delta: Delta = choice.delta ?? {};
    const reasoning = delta.reasoning_content ?? delta.reasoning;
    if (reasoning) yield this.#completion.thinking(reasoning);
    if (delta.content) yield* this.#said(delta.content);
    for (const fragment of delta.tool_calls ?? []) {
      if (this.overlong) return;
      const event = this.#toolCalls.push(fragment);
      if (event !== undefined) yield event;
    }
    if (choice.finish_reason) this.#stop = STOPS[choice.finish_reason] ?? 'end';
  }

  /** Yields text held back as a possible tag, then the whole completion. */
  *finish(): Generator<ModelEvent, void, void> {
    if (this.#splitter !== undefined) yield* this.#emit(this.#splitter.flush());
    yield this.#completion.finish(this.#model, this.#stop ?? 'end');
  }

  #said(piece: string) {
    return this.#emit(this.#splitter?.push(piece) ?? { text: piece, thinking: '' });
  }

  *#emit({ text, thinking }: Split): Generator<ModelEvent, void, void> {
    if (thinking !== '') yield this.#completion.thinking(thinking);
    if (text !== '') yield this.#completion.text(text);
  }
}

function usageOf(usage: NonNullable<ChatCompletionChunk['usage']>) {
  const deepseekHits = (usage as { readonly prompt_cache_hit_tokens?: number })
    .prompt_cache_hit_tokens;
  return {
    inputTokens: usage.prompt_tokens ?? 0,
    outputTokens: usage.completion_tokens ?? 0,
    cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? deepseekHits ?? 0,
  };
}

// Joins the fragments of tool calls despite deviations of vendors: no index, no id, one index for
// several calls, the name repeated.

type FragmentDelta = ChatCompletionChunk['choices'][number]['delta'];
type WireFragment = NonNullable<FragmentDelta['tool_calls']>[number];
type Fragment = Omit<WireFragment, 'index'> & {
  readonly index?: number;
  readonly extra_content?: { readonly google?: { readonly thought_signature?: string } };
};
type Slot = { readonly wireId: string; readonly at: number };

class ToolCallFragments {
  readonly #model: string;
  readonly #mint: MintCallId;
  readonly #completion: Completion;
  /** The newest of each. */
  readonly #byIndex = new Map<number, Slot>();
  readonly #byId = new Map<string, Slot>();
  #newest: Slot | undefined;

  constructor(request: ModelRequest, completion: Completion) {
    this.#model = request.model;
    this.#mint = createCallIds(request.messages);
    this.#completion = completion;
  }

  /** The event of a call that starts with this fragment. */
  push(fragment: Fragment): ModelEvent | undefined {
    const known = this.#slotOf(fragment);
    const begun = known === undefined ? this.#begin(fragment) : undefined;
    const at = known?.at ?? begun?.at ?? -1;
    this.#completion.toolArguments(at, fragment.function?.arguments ?? '');
    return begun?.event;
  }

  #begin(fragment: Fragment) {
    const wireId = fragment.id ?? '';
    const id = this.#mint(wireId);
    const begun = this.#completion.toolCall({ id, name: fragment.function?.name ?? '' });
    const slot = { wireId, at: begun.at };
    if (fragment.index !== undefined) this.#byIndex.set(fragment.index, slot);
    this.#byId.set(wireId, slot);
    this.#newest = slot;
    const signature = fragment.extra_content?.google?.thought_signature;
    if (signature) this.#completion.sealThinking(sealed(`${this.#model}#${id}`, signature));
    return begun;
  }

  #slotOf({ id = '', index }: Fragment): Slot | undefined {
    if (index === undefined && id === '') return this.#newest;
    const slot = index === undefined ? this.#byId.get(id) : this.#byIndex.get(index);
    const isAnother = slot !== undefined && id !== '' && slot.wireId !== '' && slot.wireId !== id;
    return isAnother ? undefined : slot;
  }
}

// The provider for every vendor that speaks OpenAI's chat completions.

export function createOpenaiProvider(deps: ProviderDeps): LLMProvider {
  const { vendor, apiBase, apiKey } = deps;
  // Another service at a configured address may refuse unknown fields.
  const toolOf = rememberedFor(wireTool);
  const takesCacheKey = vendor.quirks.takesCacheKey === true && apiBase === vendor.apiBase;
  return streamingProvider<ChatCompletionChunk>(deps, apiBase, {
    url: `${apiBase.replace(/\/$/, '')}/chat/completions`,
    headers: { authorization: `Bearer ${apiKey === '' ? 'none' : apiKey}` },
    readerFor: (request) => new OpenaiReader(request, vendor.quirks),
    open: (request, send) =>
      openShowing(request, deps, (seen, shown) =>
        send({
          ...openaiRequest(seen, vendor.quirks, shown, toolOf),
          ...(takesCacheKey ? cacheKeyField(request) : {}),
        }),
      ),
    carriesContent,
  });
}

/** Empty chunks and the opening `role` keep a connection alive but are not part of an answer. */
function carriesContent(chunk: ChatCompletionChunk): boolean {
  const delta = chunk.choices?.[0]?.delta;
  return Object.entries(delta ?? {}).some(([key, value]) => key !== 'role' && Boolean(value));
}

// Renders a ModelRequest as the body of an OpenAI chat completions call. Pure: the input is the
// whole prompt, and the output depends only on the vendor's row.

type AssistantMessage = Extract<WireMessage, { role: 'assistant' }>;

/** Google's documented placeholder for the signature of a call that another model made. */
const NO_SIGNATURE = 'skip_thought_signature_validator';
const OF_TOOLS = '[shown by the tools above]';
const CACHE_MARK = { cache_control: { type: 'ephemeral' } } as const;

export function openaiRequest(
  request: ModelRequest,
  quirks: Quirks,
  shown: ShownImages = NO_IMAGES,
  toolOf = wireTool,
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
    ...(request.tools.length === 0 ? {} : toolFields(request, toolOf)),
    ...quirks.extras?.(request),
  };
}

/** Routes the calls of a conversation to the machine that has its beginning in its cache. */
function cacheKeyField({ conversation }: ModelRequest) {
  if (conversation === undefined) return {};
  return { prompt_cache_key: hash('sha256', conversation).slice(0, 32) };
}

function toolFields(request: ModelRequest, toolOf: typeof wireTool) {
  const tools = request.tools.map((tool) => toolOf(tool));
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

/** Results are text only in this dialect: their images follow as a user message. */
function withImagesOfTools(messages: readonly WireMessage[]): readonly WireMessage[] {
  let begin = 0;
  return messages.flatMap((message, index): WireMessage | readonly WireMessage[] => {
    if (message.role !== 'tool') begin = index + 1;
    if (message.role !== 'tool' || messages[index + 1]?.role === 'tool') return message;
    const images = messages
      .slice(begin, index + 1)
      .flatMap((result) => (result.role === 'tool' ? (result.images ?? []) : []));
    return images.length === 0 ? message : [message, { role: 'user', text: OF_TOOLS, images }];
  });
}

type Dialect = { readonly model: string; readonly quirks: Quirks; readonly shown: ShownImages };

function userContent(message: Extract<WireMessage, { role: 'user' }>, shown: ShownImages) {
  const { images = [], note } = message;
  const said = note === undefined ? [message.text] : [message.text, note];
  const text = said.filter((part) => part.trim() !== '').join('\n\n');
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

/** Verbatim if vendors accept it, so that their prompt caches still match. */
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
