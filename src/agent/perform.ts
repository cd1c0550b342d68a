// Does the work that a phase stands for and moves the state on. Each phase's work ends with a signal
// of that phase; anything else does not type-check.

import type { AgentEvent } from '../kernel/message/event.ts';
import { compactThread } from './compact.ts';
import { executeCalls } from './execute.ts';
import { finalizeTurn } from './finalize.ts';
import { prepareTurn, recordSteering } from './prepare.ts';
import { routeTurn } from './route.ts';
import { advance } from './rules/turn.ts';
import type { LiveState, SignalOf, StateOf, TurnState } from './rules/turn-state.ts';
import { streamAnswer } from './stream.ts';
import type { TurnContext } from './turn-context.ts';

export async function* perform(
  turn: TurnContext,
  state: LiveState,
): AsyncGenerator<AgentEvent, TurnState, void> {
  const { limits } = turn;
  switch (state.phase) {
    case 'preparing':
      return advance(state, await prepareTurn(turn), limits);
    case 'waiting':
      return advance(state, await wait(turn, state), limits);
    case 'routing':
      return advance(state, yield* routeTurn(turn, state), limits);
    case 'compacting':
      return advance(state, yield* compactThread(turn, state), limits);
    case 'streaming':
      return advance(state, yield* streamAnswer(turn, state), limits);
    case 'executing':
      return advance(state, yield* executeCalls(turn, state), limits);
    case 'finalizing':
      return advance(state, await finalizeTurn(turn, state), limits);
  }
}

async function wait(
  turn: TurnContext,
  { delayMs }: StateOf<'waiting'>,
): Promise<SignalOf<'waiting'>> {
  if (delayMs > 0) await turn.clock.sleep(delayMs, turn.signal);
  const isSteered = await recordSteering(turn);
  const elapsedMs = turn.time.elapsedMs();
  return { type: 'resumed', elapsedMs, ...(isSteered ? { isSteered } : {}) };
}
