// A provider for models that cannot call tools, or not by the rules of their server: tools and past
// calls go out as text, and calls come back out of the text. To everybody else it is a provider like
// any other.

import { USABLE_CONTEXT_SHARE } from '../../agent/rules/budget.ts';
import { messagesTokens, textTokens } from '../../agent/rules/tokens.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { createCallIds, type MintCallId } from '../call-ids.ts';
import type { LLMProvider, ModelEvent, ModelRequest } from '../provider.ts';
import type { ModelCapabilities } from '../rules/model-capabilities.ts';
import { Attempt } from './attempt.ts';
import type { WrittenBy } from './dialects.ts';
import type { Reading } from './openings.ts';
import { corrected } from './protocol-prompt.ts';
import { readingOf, spokenRequest } from './spoken-request.ts';

export type TextToolsModel = {
  /** With its prefix. */
  readonly name: string;
  readonly capabilities: ModelCapabilities;
  readonly contextTokens: number;
};

/** Each is a whole call of its own. */
const MAX_CORRECTIONS = 2;
const CORRECTING = 'The model did not keep to the form of tool calls';

/** @throws ProviderError `context_overflow` before anything is asked */
export function withTextTools(inner: LLMProvider, model: TextToolsModel): LLMProvider {
  return {
    name: inner.name,
    stream: (request, signal) => new TextToolsCall(inner, model, request).events(signal),
  };
}

class TextToolsCall {
  readonly #inner: LLMProvider;
  readonly #model: TextToolsModel;
  readonly #original: ModelRequest;
  /** Over all tries: an id is used once. */
  readonly #mint: MintCallId;
  readonly #reading: Reading | undefined;
  readonly #written: WrittenBy;

  constructor(inner: LLMProvider, model: TextToolsModel, request: ModelRequest) {
    this.#inner = inner;
    this.#model = model;
    this.#original = request;
    this.#mint = createCallIds(request.messages);
    this.#reading = readingOf(request, model.capabilities);
    this.#written = { name: model.name, textDialect: model.capabilities.textDialect };
  }

  async *events(signal: AbortSignal): AsyncGenerator<ModelEvent, void, void> {
    let request = spokenRequest(this.#original, this.#model);
    let last = '';
    for (let corrections = 0; ; corrections += 1) {
      this.#refuseTooLong(request);
      const attempt = new Attempt(this.#reading, this.#written, this.#mint);
      for await (const event of this.#inner.stream(request, signal)) yield* attempt.take(event);
      const { problem } = attempt;
      const isFinal = attempt.raw === last || corrections >= MAX_CORRECTIONS;
      if (problem === undefined || isFinal) return yield* attempt.finish();
      last = attempt.raw;
      yield { type: 'retrying', reason: CORRECTING, delayMs: 0 };
      const isAsked = this.#reading?.isAsked === true;
      const messages = corrected(request.messages, { answer: last, problem, isAsked });
      request = { ...request, messages };
    }
  }

  /** Such servers cut silently what does not fit: the protocol first. */
  #refuseTooLong({ system, messages }: ModelRequest): void {
    if (this.#model.capabilities.toolCalling !== 'text') return;
    const text = system.map((part) => part.text).join('\n\n');
    const tokens = textTokens(text) + messagesTokens(messages);
    if (tokens <= this.#model.contextTokens * USABLE_CONTEXT_SHARE) return;
    throw new ProviderError('the thread takes more than the usable part of the context window', {
      failure: { kind: 'context_overflow' },
      provider: this.#inner.name,
      model: this.#model.name,
    });
  }
}
