// Assembles the streamed parts of an answer (text, tool calls with ids, usage) into one completion.

import { joinedUsers } from '../agent/rules/thread-repair.ts';
import { type CallId, callId } from '../kernel/message/ids.ts';
import type {
  ModelMessage,
  ThinkingBlock,
  TokenUsage,
  ToolCall,
} from '../kernel/message/transcript.ts';
import { fieldsOf, readJson } from '../lib/json/json.ts';
import type { ModelEvent, StopReason } from './provider.ts';

export type MintCallId = (offered: string) => CallId;

export function createCallIds(messages: readonly ModelMessage[]): MintCallId {
  const taken = new Set<string>();
  for (const message of messages) {
    if (message.role === 'assistant') for (const call of message.toolCalls) taken.add(call.id);
    if (message.role === 'tool') taken.add(message.callId);
  }
  /** By offered id: the number of the last id derived from it. */
  const last = new Map<string, number>();
  return (offered) => {
    const stem = offered === '' ? 'call' : offered;
    let id = offered === '' ? 'call_1' : offered;
    let n = last.get(stem) ?? 1;
    while (taken.has(id)) {
      n += 1;
      id = `${stem}_${n}`;
    }
    last.set(stem, n);
    taken.add(id);
    return callId(id);
  };
}

// Collects one answer while it streams and turns it into events. The readers of the dialects feed
// it; it does not know their wire formats.

/** More than any model writes: a longer stream is out of control and is cut. */
const MAX_ANSWER_CHARS = 8_000_000;
/** Further calls are dropped; the model sees the results of these and can continue. */
export const MAX_CALLS = 128;
/** Of sealed thinking. */
const MAX_BLOCKS = 10_000;

type Finished = Extract<ModelEvent, { type: 'finished' }>;
type GrowingCall = { readonly id: ToolCall['id']; readonly name: string; arguments: string };

export class Completion {
  readonly #thinking: ThinkingBlock[] = [];
  readonly #calls: GrowingCall[] = [];
  #text = '';
  #openThinking = '';
  #chars = 0;
  #usage: TokenUsage | undefined;

  text(delta: string): ModelEvent {
    this.#text += delta;
    this.#chars += delta.length;
    return { type: 'text', delta };
  }

  thinking(delta: string): ModelEvent {
    this.#openThinking += delta;
    this.#chars += delta.length;
    return { type: 'thinking', delta };
  }

  /** Closes the current thinking block; `signature` is sent back to its vendor. */
  sealThinking(signature?: string): void {
    if (this.#openThinking === '' && signature === undefined) return;
    const signed = signature === undefined ? {} : { signature };
    this.#thinking.push({ text: this.#openThinking, ...signed });
    this.#openThinking = '';
  }

  /** `at` is the call's position, for its arguments to come. */
  toolCall({ id, name }: Pick<ToolCall, 'id' | 'name'>): { event: ModelEvent; at: number } {
    this.#chars += name.length;
    const at = this.#calls.push({ id, name, arguments: '' }) - 1;
    return { event: { type: 'tool_call', id, name }, at };
  }

  toolArguments(at: number, delta: string): void {
    const call = this.#calls[at];
    if (call !== undefined) call.arguments += delta;
    this.#chars += delta.length;
  }

  /** Counts characters that belong to the answer and to no other part. */
  grow(chars: number): void {
    this.#chars += chars;
  }

  usage(usage: TokenUsage): void {
    this.#usage = usage;
  }

  /** True once the answer exceeds the length limit or the number of calls. */
  get overlong(): boolean {
    return (
      this.#chars > MAX_ANSWER_CHARS ||
      this.#calls.length > MAX_CALLS ||
      this.#thinking.length > MAX_BLOCKS
    );
  }

  finish(model: string, stop: StopReason): Finished {
    this.sealThinking();
    const ended = stop === 'end' && this.#calls.length > 0 ? 'tool_calls' : stop;
    return {
      type: 'finished',
      model,
      text: this.#text,
      thinking: this.#thinking,
      toolCalls: this.#calls.slice(0, MAX_CALLS).map((call) => ({ ...call })),
      stop: this.overlong ? 'length' : ended,
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
    };
  }
}

// What the request formats of all vendors share: merging messages by role and sealed reasoning that
// only its vendor can read.

const SEPARATOR = ' ';

export const sealed = (model: string, signature: string) => `${model}${SEPARATOR}${signature}`;

/** The signature if this model produced it. */
export function unsealed(block: ThinkingBlock, model: string): string | undefined {
  const start = `${model}${SEPARATOR}`;
  return block.signature?.startsWith(start) === true
    ? block.signature.slice(start.length)
    : undefined;
}

// Prepares a transcript for any wire format: ids and arguments that every vendor accepts, no empty
// answers, no two consecutive user messages. The agent pairs calls and results; nothing is dropped
// here.

export type WireMessage = ModelMessage;

const SAFE_ID = /^[a-zA-Z0-9_-]{1,40}$/;
const UNSAFE_CHARACTERS = /[^a-zA-Z0-9_-]/g;
const MAX_ID_CHARS = 40;

export function wireMessages(messages: readonly ModelMessage[]): readonly WireMessage[] {
  const ids = createSafeIds(messages);
  const out: WireMessage[] = [];
  for (const original of messages) {
    // Vendors refuse half a surrogate pair, which a cut leaves behind.
    const text = original.text.toWellFormed();
    const message = text === original.text ? original : { ...original, text };
    const last = out.at(-1);
    if (message.role === 'user') {
      const { images, note } = message;
      if (text.trim() === '' && images === undefined && note === undefined) continue;
      if (last?.role !== 'user') out.push(message);
      else out[out.length - 1] = joinedUsers(last, message);
    } else if (message.role === 'tool') {
      out.push({ ...message, callId: ids(message.callId) });
    } else if (message.toolCalls.length === 0) {
      if (text.trim() !== '') out.push(message);
    } else {
      const toolCalls = message.toolCalls.map((call) => ({ ...call, id: ids(call.id) }));
      out.push({ ...message, toolCalls });
    }
  }
  return out;
}

type Ids = (id: ToolMessage['callId']) => ToolMessage['callId'];
type ToolMessage = Extract<ModelMessage, { role: 'tool' }>;

/** A session may contain ids of another vendor; each keeps one safe name throughout the request. */
function createSafeIds(messages: readonly ModelMessage[]): Ids {
  const renamed = new Map<string, ToolMessage['callId']>();
  let taken: Set<string> | undefined;
  return (id) => {
    if (SAFE_ID.test(id)) return id;
    taken ??= new Set(
      messages.flatMap((m) => (m.role === 'assistant' ? m.toolCalls.map((call) => call.id) : [])),
    );
    const known = renamed.get(id);
    if (known !== undefined) return known;
    const stem = id.replace(UNSAFE_CHARACTERS, '_').slice(0, MAX_ID_CHARS - 4) || 'call';
    let name = stem;
    for (let n = 2; taken.has(name); n += 1) name = `${stem}_${n}`;
    taken.add(name);
    renamed.set(id, name as typeof id);
    return name as typeof id;
  };
}

/** Arguments as an object; invalid text goes under one key, so that nothing is lost. */
export function argumentsObject(raw: string): Readonly<Record<string, unknown>> {
  if (raw.trim() === '') return {};
  const read = readJson(raw);
  const value = read.kind === 'parsed' ? read.value : undefined;
  return fieldsOf(value) ?? { malformed_arguments: raw };
}
