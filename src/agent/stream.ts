// Streaming: asks the model once, shows its text as it comes and records its answer. Retries and
// fallbacks are the provider's; a thread that it would not take is answered with a smaller one.

import { ProviderError, type ProviderFailure } from '../core/errors.ts';
import type { AgentEvent } from '../core/event.ts';
import { callId } from '../core/ids.ts';
import { textTokens } from '../core/tokens.ts';
import type { ToolCall } from '../core/transcript.ts';
import type { Recovery, SignalOf, StateOf } from '../core/turn-state.ts';
import type { ModelEvent } from '../providers/provider.ts';
import { failureText } from './failure-text.ts';
import { type ModelCall, planCall } from './model-call.ts';
import { ShownText } from './shown-text.ts';
import type { TurnContext } from './turn-context.ts';
import { untilAborted } from './until-aborted.ts';

type Finished = Extract<ModelEvent, { type: 'finished' }>;
type StreamSignal = SignalOf<'streaming'>;

const RECOVERIES: Partial<Record<ProviderFailure['kind'], Recovery>> = {
  context_overflow: 'overflow',
  rejected: 'rejected',
};

/** @throws ProviderError when the model could not answer. */
export async function* streamAnswer(
  turn: TurnContext,
  state: StateOf<'streaming'>,
): AsyncGenerator<AgentEvent, StreamSignal, void> {
  const call = planCall(turn, state.model, state.ask);
  const shown = new ShownText(turn.thread, state.model);
  yield* shown.think();
  try {
    const finished = yield* show(turn, call, shown);
    return yield* take(turn, state, call, finished);
  } catch (error) {
    const notTaken = recoveryFrom(error);
    if (notTaken === undefined || turn.signal.aborted || shown.text !== '') throw error;
    return notTaken;
  }
}

function recoveryFrom(error: unknown): Extract<StreamSignal, { type: 'not_taken' }> | undefined {
  if (!(error instanceof ProviderError)) return undefined;
  const why = RECOVERIES[error.failure.kind];
  return why === undefined ? undefined : { type: 'not_taken', why, text: failureText(error) };
}

async function* show(
  turn: TurnContext,
  { handle, request }: ModelCall,
  shown: ShownText,
): AsyncGenerator<AgentEvent, Finished, void> {
  for await (const event of untilAborted(handle.stream(request, turn.signal), turn.signal)) {
    switch (event.type) {
      case 'text':
        yield* shown.add(event.delta);
        break;
      case 'thinking':
        yield* shown.think();
        break;
      case 'tool_call':
        break;
      case 'retrying':
        turn.log.warn('model call retried', { reason: event.reason, delayMs: event.delayMs });
        yield* shown.restart();
        yield { type: 'notice', text: retryNotice(event) };
        break;
      case 'finished':
        yield* shown.complete(event.text);
        return event;
    }
  }
  throw new ProviderError('stream ended without a final event', {
    failure: { kind: 'malformed' },
    provider: handle.name,
    model: handle.name,
  });
}

function retryNotice({ reason, delayMs }: Extract<ModelEvent, { type: 'retrying' }>): string {
  const seconds = Math.round(delayMs / 1000);
  return seconds === 0 ? `${reason}.` : `${reason}, trying again in ${seconds} s.`;
}

async function* take(
  turn: TurnContext,
  { ask, progress }: StateOf<'streaming'>,
  call: ModelCall,
  finished: Finished,
): AsyncGenerator<AgentEvent, StreamSignal, void> {
  const { thread } = turn;
  const { usage, model } = finished;
  const text = thread.partial?.text ?? '';
  const toolCalls = ask.kind === 'conclude' ? [] : withOwnIds(finished.toolCalls);
  const hadText = thread.written.length > 0;
  if (text.trim() !== '' || toolCalls.length > 0) {
    const entry = {
      role: 'assistant' as const,
      turnId: turn.input.turnId,
      text,
      toolCalls,
      thinking: finished.thinking,
      model,
      at: turn.clock.now(),
      ...(usage === undefined ? {} : { usage }),
    };
    await thread.record([entry], { durable: hasEffects(turn, toolCalls) });
  }
  thread.partial = undefined;
  if (usage !== undefined) {
    const estimated = call.fixedTokens + call.threadTokens;
    turn.correction.observe(call.handle.name, estimated, usage.inputTokens);
  }
  yield { type: 'model_called', model, ...(usage === undefined ? {} : { usage }) };
  turn.log.debug('model called', { model, round: progress.rounds + 1, stop: finished.stop });
  const tokens = tokensOf(call, finished);
  const [first, ...rest] = toolCalls;
  if (first !== undefined) return { type: 'called', calls: [first, ...rest], tokens };
  const written = text.trim() !== '' ? 'now' : hadText ? 'earlier' : 'never';
  const stop = finished.stop === 'tool_calls' ? 'end' : finished.stop;
  return { type: 'answered', written, stop, tokens };
}

/** Some servers number calls carelessly; within one answer each id must be its own. */
function withOwnIds(calls: readonly ToolCall[]): readonly ToolCall[] {
  const used = new Set<string>();
  return calls.map((call) => {
    let id = call.id;
    for (let copy = 2; used.has(id) || id === ''; copy += 1) id = callId(`${call.id}_${copy}`);
    used.add(id);
    return { ...call, id };
  });
}

function hasEffects({ toolbox }: TurnContext, calls: readonly ToolCall[]): boolean {
  return calls.some((call) => {
    const bound = toolbox.bind(call.name, call.arguments);
    return bound.kind === 'ready' && bound.access !== 'read';
  });
}

/** Estimated where the provider did not count. */
function tokensOf(call: ModelCall, { usage, text, toolCalls }: Finished): number {
  if (usage !== undefined) return usage.inputTokens + usage.outputTokens;
  const output = text + toolCalls.map((toolCall) => toolCall.arguments).join('');
  return call.fixedTokens + call.threadTokens + textTokens(output);
}
