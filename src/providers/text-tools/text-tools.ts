// Tool calls for models without native support: the request as text, the answer parsed, with
// another try after an unreadable call.

import { messagesTokens, textTokens, USABLE_CONTEXT_SHARE } from '../../agent/rules/tokens.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import type { ToolCall } from '../../kernel/message/transcript.ts';
import { createCallIds, type MintCallId } from '../completion.ts';
import type { LLMProvider, ModelEvent, ModelRequest } from '../provider.ts';
import type { ModelCapabilities } from '../rules/model-names.ts';
import type { Reading } from './answer-parts.ts';
import { AnswerReader } from './answer-reader.ts';
import type { WrittenBy } from './dialects.ts';
import { corrected, readingOf, spokenRequest } from './spoken-request.ts';
import type { SpokenCall } from './written-calls.ts';

type Finished = Extract<ModelEvent, { type: 'finished' }>;

class Attempt {
  readonly #reader: AnswerReader | undefined;
  readonly #mint: MintCallId;
  readonly #calls: ToolCall[] = [];
  #raw = '';
  #text = '';
  #instead = '';
  #finished: Finished | undefined;
  #problem: string | undefined;

  /** Without `reading` the text is the answer unchanged. */
  constructor(reading: Reading | undefined, model: WrittenBy, mint: MintCallId) {
    this.#reader = reading === undefined ? undefined : new AnswerReader(reading, model);
    this.#mint = mint;
  }

  /** As the model wrote it. */
  get raw(): string {
    return this.#raw;
  }

  /** For the model; known at the end of the answer. */
  get problem(): string | undefined {
    return this.#problem;
  }

  *take(event: ModelEvent): Generator<ModelEvent, void, void> {
    if (event.type === 'text') {
      this.#raw += event.delta;
      const { text, calls } = this.#reader?.push(event.delta) ?? { text: event.delta, calls: [] };
      yield* this.#say(text);
      yield* this.#call(calls);
    } else if (event.type === 'finished') {
      this.#finished = event;
      yield* this.#end(event);
    } else {
      yield event;
    }
  }

  /** The one `finished`, preceded by text that is shown only if nothing better comes. */
  *finish(): Generator<ModelEvent, void, void> {
    const event = this.#finished;
    if (event === undefined) return;
    yield* this.#say(this.#instead);
    const toolCalls = [...event.toolCalls, ...this.#calls];
    const stop = event.stop === 'end' && toolCalls.length > 0 ? 'tool_calls' : event.stop;
    yield { ...event, text: this.#text, toolCalls, stop };
  }

  *#end({ stop, toolCalls }: Finished): Generator<ModelEvent, void, void> {
    const ended = this.#reader?.end(stop === 'length');
    if (ended === undefined) return;
    yield* this.#say(ended.text);
    yield* this.#call(ended.calls);
    this.#instead = ended.instead;
    const isFinal = stop === 'refused' || toolCalls.length > 0;
    this.#problem = isFinal ? undefined : ended.problem;
  }

  *#say(delta: string): Generator<ModelEvent, void, void> {
    if (delta === '') return;
    this.#text += delta;
    yield { type: 'text', delta };
  }

  *#call(calls: readonly SpokenCall[]): Generator<ModelEvent, void, void> {
    for (const { name, args } of calls) {
      const id = this.#mint('text_call');
      this.#calls.push({ id, name, arguments: JSON.stringify(args) });
      yield { type: 'tool_call', id, name };
    }
  }
}

// A provider for models that cannot call tools, or not under the rules of their server: tools and
// past calls are sent as text, and calls are parsed from the answer. To callers it is a provider
// like any other.

type TextToolsModel = {
  /** With its prefix. */
  readonly name: string;
  readonly capabilities: ModelCapabilities;
  readonly contextTokens: number;
};

/** Each is a whole call of its own. */
const MAX_CORRECTIONS = 2;
const CORRECTING = 'The model did not use the format for tool calls';

/** @throws ProviderError `context_overflow` before anything is requested */
export function withTextTools(inner: LLMProvider, model: TextToolsModel): LLMProvider {
  const { name, capabilities } = model;
  const written = { name, textDialect: capabilities.textDialect };
  return {
    name: inner.name,
    async *stream(original, signal) {
      /** Shared by all tries: an id is used once. */
      const mint = createCallIds(original.messages);
      const reading = readingOf(original, capabilities);
      let request = spokenRequest(original, model);
      let last = '';
      for (let corrections = 0; ; corrections += 1) {
        refuseTooLong(request, inner, model);
        const attempt = new Attempt(reading, written, mint);
        for await (const event of inner.stream(request, signal)) yield* attempt.take(event);
        const { problem } = attempt;
        const isFinal = attempt.raw === last || corrections >= MAX_CORRECTIONS;
        if (problem === undefined || isFinal) return yield* attempt.finish();
        last = attempt.raw;
        yield { type: 'retrying', reason: CORRECTING, delayMs: 0 };
        const isAsked = reading?.isAsked === true;
        const messages = corrected(request.messages, { answer: last, problem, isAsked });
        request = { ...request, messages };
      }
    },
  };
}

/** Such servers silently cut what does not fit, the protocol first. */
function refuseTooLong(
  { system, messages }: ModelRequest,
  inner: LLMProvider,
  { name, capabilities, contextTokens }: TextToolsModel,
): void {
  if (capabilities.toolCalling !== 'text') return;
  const text = system.map((part) => part.text).join('\n\n');
  const tokens = textTokens(text) + messagesTokens(messages);
  if (tokens <= contextTokens * USABLE_CONTEXT_SHARE) return;
  throw new ProviderError('the thread takes more than the usable part of the context window', {
    failure: { kind: 'context_overflow' },
    provider: inner.name,
    model: name,
  });
}
