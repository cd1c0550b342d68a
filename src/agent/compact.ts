// Compacting: makes the thread smaller, by as much as the limit or the provider asks for. First the
// earlier conversation is summed up, once and with a deadline; where the last exchange still does not
// fit, tools and prompt give way to it, and then what is older is left out of the model's view. The
// transcript keeps everything.

import { ProviderError } from '../kernel/message/errors.ts';
import type { AgentEvent } from '../kernel/message/event.ts';
import { requestOf } from './compact-session.ts';
import type { CompactionRequest } from './compaction.ts';
import { expectedTokens, type ModelCall, notedCall, planCall } from './model-call.ts';
import { MAX_SQUEEZE } from './rules/budget.ts';
import { keptTokens } from './rules/compaction.ts';
import { takenUp } from './rules/thread-view.ts';
import type { SignalOf, StateOf } from './rules/turn-state.ts';
import type { TurnContext } from './turn-context.ts';

/** A provider that counts more than we do gets this share of what we sent. */
const OVERFLOW_SHARE = 0.5;
/** Of it, what a summary leaves word by word: the window we believe in is not the real one. */
const OVERFLOW_KEPT_SHARE = 0.25;
/** Where turns are left out, what stays takes this share of the room, so that not every call trims. */
const TRIM_TARGET_SHARE = 0.8;
/** Longest wait for a summary while a person waits for the answer. */
const SUMMARY_DEADLINE_MS = 45_000;

export const LARGER_WINDOW =
  'For more room choose another model with /model, or raise the window in the settings of the model server and in agents.defaults.maxContextTokens.';
const FORGOT_HISTORY =
  'The provider rejected the conversation; I am trying with your latest message alone.';
const SUMMING_UP = 'Our conversation has grown long: I am summing up its earlier part.';

class SummaryLate extends Error {
  override readonly name = 'SummaryLate';
}

export async function* compactThread(
  turn: TurnContext,
  state: StateOf<'compacting'>,
): AsyncGenerator<AgentEvent, SignalOf<'compacting'>, void> {
  const call = planCall(turn, state);
  turn.log.info('thread made smaller', { pressure: state.pressure, tokens: call.threadTokens });
  if (state.pressure === 'rejected') {
    turn.thread.forgetHistory();
    yield { type: 'notice', text: FORGOT_HISTORY };
    return { type: 'compacted' };
  }
  if (maySumUp(turn)) {
    turn.lastCall.hasWaited = true;
    yield { type: 'notice', text: SUMMING_UP };
    await sumUp(turn, requestFor(turn, call, state.pressure));
  }
  if (state.pressure === 'overflow') {
    const room = Math.floor(call.threadTokens * OVERFLOW_SHARE);
    if (planCall(turn, state).threadTokens > room) turn.thread.shrink(room);
  } else {
    const fitting = withLastExchange(turn, state);
    const room = roomForThread(turn, fitting);
    if (fitting.threadTokens > room) {
      turn.thread.shrink(Math.max(0, room), Math.floor(room * TRIM_TARGET_SHARE));
      refuseIfTooSmall(turn, planCall(turn, state));
    }
  }
  return { type: 'compacted' };
}

/** The call with as many tools and as much of the prompt as leave room for what was said last. */
function withLastExchange(turn: TurnContext, state: StateOf<'compacting'>): ModelCall {
  const { lastCall, thread, log } = turn;
  let call = planCall(turn, state);
  while (roomForThread(turn, call) < thread.floorTokens && lastCall.squeeze < MAX_SQUEEZE) {
    lastCall.squeeze += 1;
    call = planCall(turn, state);
  }
  if (lastCall.squeeze > 0) {
    const { contextTokens, handle, request } = call;
    const tools = request.tools.length;
    log.warn('tools and prompt shortened', { model: handle.name, contextTokens, tools });
  }
  return call;
}

/** @throws ProviderError */
function refuseIfTooSmall(turn: TurnContext, call: ModelCall): void {
  const { contextTokens, budget, handle } = call;
  if (expectedTokens(turn, call) <= contextTokens - budget.outputTokens) return;
  const size = contextTokens.toLocaleString('en-US');
  throw new ProviderError('the window does not hold the prompt and the last exchange', {
    failure: { kind: 'context_overflow', contextTokens },
    provider: handle.name.split('/')[0] ?? handle.name,
    model: handle.name,
    userText: `The context window of ${handle.name} (${size} tokens) is too small for my instructions and our last exchange. ${LARGER_WINDOW} /new starts without what was said before.`,
  });
}

export function maySumUp({ thread, settings, compactor, input }: TurnContext): boolean {
  return settings.compaction.enabled && thread.hasEarlier && !compactor.isResting(input.session);
}

function requestFor(
  turn: TurnContext,
  call: ModelCall,
  pressure: StateOf<'compacting'>['pressure'],
): CompactionRequest {
  const request = requestOf(turn, notedCall(turn, call));
  if (pressure !== 'overflow') return request;
  const usual = keptTokens(request.policy, request.size);
  const keepTokens = Math.min(usual, Math.floor(call.threadTokens * OVERFLOW_KEPT_SHARE));
  return { ...request, keepTokens };
}

/** What comes of it, the caller sees by the thread. @throws the reason of the turn's signal */
async function sumUp(turn: TurnContext, request: CompactionRequest): Promise<void> {
  const { clock, compactor, input, sessions, signal, thread } = turn;
  const late = new AbortController();
  const deadline = clock.timer(SUMMARY_DEADLINE_MS, () => late.abort(new SummaryLate()));
  try {
    const either = AbortSignal.any([signal, late.signal]);
    const report = await compactor.now(request, either);
    if (report.kind === 'compacted') thread.reopen(takenUp(await sessions.load(input.session)));
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof SummaryLate)) throw error;
    compactor.rest(input.session);
  } finally {
    deadline[Symbol.dispose]();
  }
}

function roomForThread(turn: TurnContext, { handle, budget, fixedTokens }: ModelCall): number {
  return Math.floor(budget.inputTokens / turn.correction.factor(handle.name) - fixedTokens);
}
