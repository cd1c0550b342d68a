// CONTRACT of a model provider: one method. The transcript is canonical; the provider renders its
// wire format. Every provider passes test/contract/provider.ts.

import type { ProviderFailure } from '../kernel/message/errors.ts';
import type { CallId, TurnId } from '../kernel/message/ids.ts';
import type {
  ModelMessage,
  ThinkingBlock,
  TokenUsage,
  ToolCall,
} from '../kernel/message/transcript.ts';
import type { ModelCapabilities } from './rules/model-names.ts';

export type ToolSpec = {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly schema: Readonly<Record<string, unknown>>;
};

export type ModelRequest = {
  /** The vendor's name of the model, without our prefix. */
  readonly model: string;
  /** Parts of the system prompt, most stable first; a cache mark may follow `stable` ones. */
  readonly system: readonly { readonly text: string; readonly stable: boolean }[];
  readonly messages: readonly ModelMessage[];
  /**
   * The same for all calls that repeat a common start and continue it; undefined: a single call.
   */
  readonly conversation?: string;
  readonly tools: readonly ToolSpec[];
  /** `none`: the tools are listed, since earlier messages call them, but must not be called now. */
  readonly toolChoice?: 'none';
  readonly maxTokens: number;
  readonly temperature?: number;
  /** Tokens the model may think; undefined or 0: no thinking. */
  readonly thinkingBudget?: number;
  /** Of the requested model; set by the caller that resolved its name. */
  readonly capabilities?: ModelCapabilities;
};

export type StopReason = 'end' | 'tool_calls' | 'length' | 'refused';

export type ModelEvent =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'thinking'; readonly delta: string }
  | { readonly type: 'tool_call'; readonly id: CallId; readonly name: string }
  /** The call is retried, possibly by another model; what was streamed so far is void. */
  | { readonly type: 'retrying'; readonly reason: string; readonly delayMs: number }
  /** The server answers one call at a time and others are first; 0: the wait is over. */
  | { readonly type: 'waiting'; readonly server: string; readonly ahead: number }
  | {
      readonly type: 'finished';
      readonly model: string;
      readonly text: string;
      readonly thinking: readonly ThinkingBlock[];
      readonly toolCalls: readonly ToolCall[];
      readonly stop: StopReason;
      readonly usage?: TokenUsage;
    };

export interface LLMProvider {
  readonly name: string;
  /** Address of the server, without credentials; absent if no server is asked. */
  readonly base?: string;
  /** Streams one completion; ends with exactly one `finished` or throws ProviderError. */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
}

/** Observes the tries of one call; each retry and each fallback is one. */
export interface CallMeter {
  /** The log's label of each try: its purpose and its turn. */
  readonly about: { readonly role: string; readonly turnId?: TurnId };
  /** Called before a try of this model, by its name with prefix. @throws if it must not be made */
  begin(model: string, signal: AbortSignal, at?: TryPlace): Promise<MeteredTry>;
}

export type TryPlace = {
  /** As in the provider. */
  readonly base?: string;
  /** For a place at a local server, before the try began; absent if none was needed. */
  readonly waitedMs?: number;
  /** The model before it; absent: the chosen model is tried. */
  readonly insteadOf?: FailedModel;
};

/** `reason`: in a few words; `text`: the error for the person. */
export type FailedModel = {
  readonly model: string;
  readonly reason: string;
  readonly text: string;
};

/** Codes of errors of `begin`: a person is asked, and no further model is tried. */
export const FALLBACK_ASKED = 'fallback_asked';
/** This model may not answer in place of the failed one, whose error counts. */
export const FALLBACK_REFUSED = 'fallback_refused';
/** The next model is tried at once. */
export const PASSED_OVER = 'passed_over';

export interface MeteredTry {
  /** The longest answer this try may request. */
  readonly maxTokens: number;
  /** Records how the try ended. */
  end(how: TryEnd): void;
}

/** `answerChars`: of text, thinking and tool calls, as far as they arrived. */
export type TryEnd =
  | { readonly kind: 'finished'; readonly usage?: TokenUsage; readonly answerChars: number }
  | { readonly kind: 'failed'; readonly failure: ProviderFailure; readonly answerChars: number };

/** A model ready to be called, with what the agent must know about it. */
export type ModelHandle = {
  /** As configured, with its prefix: `anthropic/claude-opus-4-5`. */
  readonly name: string;
  readonly contextTokens: number;
  /** Runs on the person's own machine or network: smaller prompt budgets. */
  readonly local: boolean;
  /** Receives the images of messages. */
  readonly vision: boolean;
  /** Of the model itself; a fallback that answers in its place has its own. */
  readonly capabilities: ModelCapabilities;
  /** Includes retries and fallbacks. */
  stream(
    request: Omit<ModelRequest, 'model'>,
    signal: AbortSignal,
    meter?: CallMeter,
  ): AsyncIterable<ModelEvent>;
};

/** Resolves model names; the only place that knows which vendor serves what. */
export interface ModelRegistry {
  /**
   * `once`: only this model and a single try, no fallback.
   * @throws ProviderError `unknown_model` when no configured provider serves the name.
   */
  resolve(model: string, tries?: 'once'): ModelHandle;
  /** The default model: configured, found in the environment, local, or the demo. */
  readonly defaultModel: string;
  /**
   * Resolves when the server's facts about the model are known, or after some seconds. Undefined if
   * nothing has to be requested; absent if nothing ever has.
   */
  ready?(model: string): Promise<void> | undefined;
  /** A cheaper model of the same vendor for background work; the model itself if there is none. */
  fast(model: string): string;
}
