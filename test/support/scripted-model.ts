// A model that answers by script, without a network: every call must be scripted, and `assertDone`
// fails on what is left over. It is as strict about the thread as the strictest provider.

import { type CallId, callId } from '../../src/kernel/message/ids.ts';
import type { ThinkingBlock, TokenUsage, ToolCall } from '../../src/kernel/message/transcript.ts';
import type {
  ModelEvent,
  ModelHandle,
  ModelRegistry,
  ModelRequest,
  StopReason,
} from '../../src/providers/provider.ts';
import { capabilitiesOf } from '../../src/providers/rules/model-names.ts';
import { threadFaults } from './thread-faults.ts';
import { withoutTimes } from './without-times.ts';

export type ScriptedRequest = Omit<ModelRequest, 'model'>;

/** Yields the events of one call. */
export type ScriptedCall = (
  request: ScriptedRequest,
  signal: AbortSignal,
) => AsyncIterable<ModelEvent>;

export type ScriptedModel = {
  readonly models: ModelRegistry;
  /** Without the times of the messages. */
  readonly requests: readonly ScriptedRequest[];
  /** As they were sent. */
  readonly sent: readonly ScriptedRequest[];
  script(...calls: readonly ScriptedCall[]): void;
  assertDone(): void;
};

export const SCRIPTED_MODEL = 'test/scripted';

export function createScriptedModel(
  options: {
    readonly contextTokens?: number;
    readonly local?: boolean;
    readonly vision?: boolean;
  } = {},
): ScriptedModel {
  const waiting: ScriptedCall[] = [];
  const requests: ScriptedRequest[] = [];
  const sent: ScriptedRequest[] = [];
  const complaints: string[] = [];
  const handle: ModelHandle = {
    name: SCRIPTED_MODEL,
    contextTokens: options.contextTokens ?? 128_000,
    local: options.local ?? false,
    vision: options.vision ?? false,
    capabilities: capabilitiesOf({
      name: SCRIPTED_MODEL,
      local: options.local ?? false,
      overrides: [],
    }),
    stream(request, signal) {
      sent.push(request);
      requests.push(timeless(request));
      complaints.push(...threadFaults(request.messages));
      const call = waiting.shift();
      if (call === undefined) {
        complaints.push(`call ${requests.length} is not scripted`);
        throw new Error('unscripted model call');
      }
      return call(request, signal);
    },
  };
  return {
    models: { resolve: () => handle, defaultModel: SCRIPTED_MODEL, fast: (model) => model },
    requests,
    sent,
    script: (...calls) => void waiting.push(...calls),
    assertDone() {
      if (waiting.length > 0)
        complaints.push(`${waiting.length} scripted calls were not asked for`);
      if (complaints.length > 0) throw new Error(complaints.join('\n'));
    },
  };
}

const timeless = (request: ScriptedRequest): ScriptedRequest => ({
  ...request,
  messages: request.messages.map((message) =>
    message.role === 'user' ? { ...message, text: withoutTimes(message.text) } : message,
  ),
});

type FinishOptions = {
  readonly usage?: TokenUsage;
  readonly stop?: StopReason;
  readonly thinking?: readonly ThinkingBlock[];
};

function finished(
  text: string,
  toolCalls: readonly ToolCall[],
  { usage, stop, thinking }: FinishOptions,
): ModelEvent {
  return {
    type: 'finished',
    model: SCRIPTED_MODEL,
    text,
    toolCalls,
    thinking: thinking ?? [],
    stop: stop ?? (toolCalls.length > 0 ? 'tool_calls' : 'end'),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** Answers with a text, streamed in pieces of a few characters. */
export function says(text: string, options: FinishOptions = {}): ScriptedCall {
  return async function* () {
    for (let at = 0; at < text.length; at += 5) {
      yield { type: 'text', delta: text.slice(at, at + 5) };
    }
    yield finished(text, [], options);
  };
}

export type ScriptedToolCall = {
  readonly name: string;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly id?: string;
};

/** Calls tools, after a text if one is given. */
export function calls(
  toolCalls: readonly ScriptedToolCall[],
  text = '',
  options: FinishOptions = {},
): ScriptedCall {
  return async function* () {
    if (text !== '') yield { type: 'text', delta: text };
    const made = toolCalls.map(
      ({ name, input = {}, id }, index): ToolCall => ({
        id: callId(id ?? `call_${index}`),
        name,
        arguments: JSON.stringify(input),
      }),
    );
    for (const { id, name } of made) yield { type: 'tool_call', id: id satisfies CallId, name };
    yield finished(text, made, options);
  };
}

/** Shows a text and then fails or waits for the signal. */
export function breaksOff(text: string, how: Error | 'hangs'): ScriptedCall {
  return async function* (_request, signal) {
    if (text !== '') yield { type: 'text', delta: text };
    if (how !== 'hangs') throw how;
    await new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  };
}
