// What becomes of tool calls that a killed process left without a result. Reading again is
// harmless; anything else is never run again on its own: the model is told and decides.

import { isRepeatable } from '../core/rights.ts';
import type { ToolCall, ToolEntry } from '../core/transcript.ts';
import { permissionFor } from './permission.ts';
import type { TurnContext } from './turn-context.ts';

const OUTCOME_UNKNOWN = '[outcome unknown: the process stopped while this ran]';
const NOT_RUN = '[not run: the process stopped before this call began]';

/** Records what is known of the others and returns the calls that may run again, in order. */
export async function settleInterruptedCalls(turn: TurnContext): Promise<readonly ToolCall[]> {
  const { thread, toolbox } = turn;
  const open = thread.openCalls;
  const effects = open.filter((call) => {
    const bound = toolbox.bind(call.name, call.arguments);
    if (bound.kind === 'refused' || isRepeatable(bound.access)) return false;
    // It did not run: asking the owner again changes nothing.
    return permissionFor(turn, bound) === 'free';
  });
  // Calls with effects run one by one, and each result is on disk before the next begins: only the
  // first one without a result can have been running.
  const entries = effects.map((call, index) =>
    index === 0
      ? toolEntry(turn, call, 'unknown', OUTCOME_UNKNOWN)
      : toolEntry(turn, call, 'failed', NOT_RUN),
  );
  if (entries.length > 0) {
    turn.log.warn('tool calls were interrupted', { calls: entries.map(({ name }) => name) });
  }
  await thread.record(entries, { durable: true });
  return open.filter((call) => !effects.includes(call));
}

export function toolEntry(
  { input, clock }: TurnContext,
  call: ToolCall,
  status: ToolEntry['status'],
  text: string,
): ToolEntry {
  return {
    role: 'tool',
    turnId: input.turnId,
    callId: call.id,
    name: call.name,
    status,
    text,
    at: clock.now(),
  };
}
