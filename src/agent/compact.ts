// Compacting: makes the thread smaller, by as much as the limit or the provider asks for. First the
// earlier conversation is summed up, once and with a deadline; what still does not fit is left out of
// the model's view. The transcript keeps everything.

import { keptTokens } from '../core/compaction.ts';
import type { AgentEvent } from '../core/event.ts';
import { takenUp } from '../core/thread-view.ts';
import type { SignalOf, StateOf } from '../core/turn-state.ts';
import { requestOf } from './compact-session.ts';
import type { CompactionRequest } from './compaction.ts';
import { expectedTokens, type ModelCall, planCall } from './model-call.ts';
import type { TurnContext } from './turn-context.ts';

/** A provider that counts more than we do gets this share of what we sent. */
const OVERFLOW_SHARE = 0.5;
/** Of it, what a summary leaves word by word: the window we believe in is not the real one. */
const OVERFLOW_KEPT_SHARE = 0.25;
/** Below this no thread makes sense; the provider then decides. */
const MIN_THREAD_TOKENS = 256;
/** Longest wait for a summary while a person waits for the answer. */
const SUMMARY_DEADLINE_MS = 45_000;

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
  const summed = planCall(turn, state);
  if (state.pressure === 'overflow') {
    const room = Math.floor(call.threadTokens * OVERFLOW_SHARE);
    if (summed.threadTokens > room) turn.thread.shrink(room);
  } else if (expectedTokens(turn, summed) > summed.budget.inputTokens) {
    turn.thread.shrink(roomForThread(turn, summed));
  }
  return { type: 'compacted' };
}

export function maySumUp({ thread, settings, compactor, input }: TurnContext): boolean {
  return settings.compaction.enabled && thread.hasEarlier && !compactor.isResting(input.session);
}

function requestFor(
  turn: TurnContext,
  { handle, threadTokens }: ModelCall,
  pressure: StateOf<'compacting'>['pressure'],
): CompactionRequest {
  const request = requestOf(turn, handle);
  if (pressure !== 'overflow') return request;
  const usual = keptTokens(request.policy, request.size);
  const keepTokens = Math.min(usual, Math.floor(threadTokens * OVERFLOW_KEPT_SHARE));
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
  const usable = budget.trimmedTokens / turn.correction.factor(handle.name);
  return Math.max(MIN_THREAD_TOKENS, Math.floor(usable - fixedTokens));
}
