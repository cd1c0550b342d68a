// What the simulated model server can be told to answer, and what it recorded of a request. Both
// dialects share these; llm-server-openai.ts and llm-server-anthropic.ts put them on the wire.

/** A piece of streamed text, or a gate: nothing further is written until the promise settles. */
export type Chunk = string | Promise<unknown>;

export type ScriptedCall = {
  /** Minted when left out; set it to simulate duplicate or empty ids. */
  readonly id?: string;
  readonly name: string;
  /** What Google signs a call with, in its OpenAI dialect. */
  readonly signature?: string;
  /** An object, or the raw text a model might really write, valid JSON or not. */
  readonly arguments: string | Readonly<Record<string, unknown>>;
};

export type Fault =
  /** An HTTP answer instead of a completion. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: unknown;
    }
  /** Never answers. */
  | { readonly kind: 'hang' }
  /** Closes the connection before any byte. */
  | { readonly kind: 'refuse' }
  /** Writes the chunks, then says nothing more and keeps the connection open. */
  | { readonly kind: 'stall' }
  /** Writes the chunks, then breaks the connection. */
  | { readonly kind: 'drop' }
  /** Writes the chunks, then closes politely without the dialect's end event. */
  | { readonly kind: 'no_end' }
  /** Writes the chunks, then an event that is no JSON. */
  | { readonly kind: 'malformed' }
  /** Writes the chunks, then the dialect's error event. */
  | { readonly kind: 'error_event'; readonly type: string; readonly message: string }
  /** Repeats the chunks until the client leaves. */
  | { readonly kind: 'endless' };

export type LlmReply = {
  readonly chunks?: readonly Chunk[];
  readonly thinking?: string;
  readonly signature?: string;
  readonly toolCalls?: readonly ScriptedCall[];
  readonly stop?: 'end' | 'tool_calls' | 'length' | 'refused';
  readonly usage?: {
    readonly input: number;
    readonly output: number;
    readonly cached?: number;
    /** To the cache, where writing there is counted: Anthropic. */
    readonly written?: number;
  };
  readonly fault?: Fault;
  /** Nothing is answered, not even headers, until this settles. */
  readonly gate?: Promise<unknown>;
  /** Cuts the streamed body in two writes at this byte; `every` writes each byte on its own. */
  readonly cutAt?: number | 'every';
};

export type SentImage = { readonly mimeType: string; readonly base64: string };

export type LlmRequest = {
  readonly dialect: 'openai' | 'anthropic';
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Readonly<Record<string, unknown>>;
  readonly model: string;
  readonly stream: boolean;
  /** The system prompt as one text. */
  readonly system: string;
  /** Texts of the user messages after the last answer, joined by a line break, without their times. */
  readonly lastUserText: string;
  /** Results of the last round of tools, in order. */
  readonly toolResults: readonly { readonly callId: string; readonly text: string }[];
  readonly tools: readonly string[];
  /** All images of the conversation, in order. */
  readonly images: readonly SentImage[];
  /** When its last byte came in, milliseconds since the epoch with fractions. */
  readonly arrivedAt: number;
  /** Resolves when the client goes away before the answer ended. */
  readonly abandoned: Promise<void>;
};

/** A request that the real service would refuse; the server answers 400 (or `status`) with it. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  constructor(message: string, options: { status?: number; code?: string } = {}) {
    super(message);
    this.status = options.status ?? 400;
    this.code = options.code ?? 'invalid_request_error';
  }
}

/** What one dialect knows: reading a request strictly, and writing replies and errors. */
export interface Dialect {
  readonly name: LlmRequest['dialect'];
  /** @throws Refusal */
  authenticate(headers: LlmRequest['headers'], apiKey: string | undefined): void;
  /** @throws Refusal */
  read(
    body: Readonly<Record<string, unknown>>,
  ): Omit<LlmRequest, 'headers' | 'abandoned' | 'arrivedAt' | 'body'>;
  /** The stream as frames and gates; the last of `frames` is the end event. */
  frames(reply: LlmReply, request: LlmRequest, callIds: () => string): WireReply;
  errorFrame(type: string, message: string): string;
  errorBody(status: number, code: string, message: string): unknown;
}

export type WireReply = {
  readonly head: readonly string[];
  readonly content: readonly Chunk[];
  readonly end: readonly string[];
  /** The whole answer as one JSON value, for calls that do not stream. */
  whole(): unknown;
};

const NONCE = /\bnonce-[A-Za-z0-9]+\b/g;

/** Answers with every `nonce-...` of the last user text, or with that text where it has none. */
export function echo(request: LlmRequest): LlmReply {
  const nonces = request.lastUserText.match(NONCE);
  return { chunks: [nonces === null ? `echo: ${request.lastUserText}` : nonces.join(' ')] };
}

/** A reply of one text, streamed word by word. */
export const say = (text: string): LlmReply => ({ chunks: text.match(/\S+\s*|\s+/g) ?? [] });

/** A reply that asks for tools. */
export const callTools = (...toolCalls: ScriptedCall[]): LlmReply => ({ toolCalls });

export const fail = (
  status: number,
  options: { headers?: Record<string, string>; body?: unknown } = {},
): LlmReply => ({ fault: { kind: 'status', status, ...options } });

export const argumentsText = (call: ScriptedCall) =>
  typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments);
