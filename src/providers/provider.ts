// CONTRACT of a model provider: one method. The transcript is canonical, the provider renders its
// wire form. Every provider passes test/contract/provider.ts.

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
  /** Name as the vendor knows it, without our prefix. */
  readonly model: string;
  /** Parts of the system prompt, most stable first; a cache mark may stand after `stable` ones. */
  readonly system: readonly { readonly text: string; readonly stable: boolean }[];
  readonly messages: readonly ModelMessage[];
  /** Of all calls that say the same again and go on from there; undefined: this call stands alone. */
  readonly conversation?: string;
  readonly tools: readonly ToolSpec[];
  /** `none`: the tools are named, since earlier messages call them, but must not be called now. */
  readonly toolChoice?: 'none';
  readonly maxTokens: number;
  readonly temperature?: number;
  /** Tokens the model may think; undefined or 0 = no thinking asked for. */
  readonly thinkingBudget?: number;
  /** Of the model that is asked; known to whoever resolved its name. */
  readonly capabilities?: ModelCapabilities;
};

export type StopReason = 'end' | 'tool_calls' | 'length' | 'refused';

export type ModelEvent =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'thinking'; readonly delta: string }
  | { readonly type: 'tool_call'; readonly id: CallId; readonly name: string }
  /** The call is being tried again or by another model; what was streamed so far is void. */
  | { readonly type: 'retrying'; readonly reason: string; readonly delayMs: number }
  /** Others are answered first, by a server that answers one at a time; 0: the wait is over. */
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
  /** Address of the server, without credentials; left out where none is asked. */
  readonly base?: string;
  /** Streams one completion; ends with exactly one `finished` or throws ProviderError. */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
}

/** Watches the tries of one call; each retry and each fallback is one. */
export interface CallMeter {
  /** What the log calls each try by: what it is for, and in which turn. */
  readonly about: { readonly role: string; readonly turnId?: TurnId };
  /**
   * Before a try of this model, by its name with prefix. @throws where it must not be made
   */
  begin(model: string, signal: AbortSignal, at?: TryPlace): Promise<MeteredTry>;
}

export type TryPlace = {
  /** As of the provider. */
  readonly base?: string;
  /** For a place at a local server, before the try began; left out where none was needed. */
  readonly waitedMs?: number;
};

export interface MeteredTry {
  /** The longest answer this try may ask for. */
  readonly maxTokens: number;
  /** How the try ended. */
  end(how: TryEnd): void;
}

/** `answerChars`: of text, thinking and tool calls, as far as they came. */
export type TryEnd =
  | { readonly kind: 'finished'; readonly usage?: TokenUsage; readonly answerChars: number }
  | { readonly kind: 'failed'; readonly failure: ProviderFailure; readonly answerChars: number };

/** A model ready to be asked, with what the agent must know of it. */
export type ModelHandle = {
  /** As configured, with its prefix: `anthropic/claude-opus-4-5`. */
  readonly name: string;
  readonly contextTokens: number;
  /** Runs on the person's own machine or net: smaller prompt budgets. */
  readonly local: boolean;
  /** Is shown the images of messages. */
  readonly vision: boolean;
  /** Of the model itself; a fallback that answers in its place has its own. */
  readonly capabilities: ModelCapabilities;
  /** Retries and fallbacks included. */
  stream(
    request: Omit<ModelRequest, 'model'>,
    signal: AbortSignal,
    meter?: CallMeter,
  ): AsyncIterable<ModelEvent>;
};

/** Resolves model names; the one place that knows which vendor serves what. */
export interface ModelRegistry {
  /**
   * `once`: this very model and a single try, no other in its place.
   * @throws ProviderError `unknown_model` when no configured provider serves the name.
   */
  resolve(model: string, tries?: 'once'): ModelHandle;
  /** The model in force: configured, found in the environment, local, or the demo. */
  readonly defaultModel: string;
  /**
   * What its server says of it is known, as far as it answers within seconds. Undefined where nothing
   * has to be asked; left out where nothing ever has.
   */
  ready?(model: string): Promise<void> | undefined;
  /** A cheaper model of the same vendor for side work; the model itself where there is none. */
  fast(model: string): string;
}
