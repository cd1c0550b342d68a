// Compacting: makes the thread smaller, by as much as the limit or the provider asks for. Only the
// model's view shrinks; the transcript keeps everything.

import type { AgentEvent } from '../core/event.ts';
import type { SignalOf, StateOf } from '../core/turn-state.ts';
import { type ModelCall, planCall } from './model-call.ts';
import type { TurnContext } from './turn-context.ts';

/** A provider that counts more than we do gets this share of what we sent. */
const OVERFLOW_SHARE = 0.5;
/** Below this no thread makes sense; the provider then decides. */
const MIN_THREAD_TOKENS = 256;

const FORGOT_HISTORY =
  'The provider rejected the conversation; I am trying with your latest message alone.';

export async function* compactThread(
  turn: TurnContext,
  state: StateOf<'compacting'>,
): AsyncGenerator<AgentEvent, SignalOf<'compacting'>, void> {
  const call = planCall(turn, state.model, state.ask);
  turn.log.info('thread made smaller', { pressure: state.pressure, tokens: call.threadTokens });
  switch (state.pressure) {
    case 'estimate':
      turn.thread.shrink(roomForThread(turn, call));
      break;
    case 'overflow':
      turn.thread.shrink(Math.floor(call.threadTokens * OVERFLOW_SHARE));
      break;
    case 'rejected':
      turn.thread.forgetHistory();
      yield { type: 'notice', text: FORGOT_HISTORY };
      break;
  }
  return { type: 'compacted' };
}

function roomForThread(turn: TurnContext, { handle, budget, fixedTokens }: ModelCall): number {
  const usable = budget.trimmedTokens / turn.correction.factor(handle.name);
  return Math.max(MIN_THREAD_TOKENS, Math.floor(usable - fixedTokens));
}
