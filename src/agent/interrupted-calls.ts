// What becomes of tool calls that a killed process left without a result. Reading again is
// harmless; anything else is never run again on its own: the model is told and decides.

import { isRepeatable } from '../kernel/access/rights.ts';
import type { ToolCall, ToolEntry } from '../kernel/message/transcript.ts';
import { resultIdOf } from '../kernel/sessions/rules/earlier.ts';
import type { BoundCall } from '../tools/tool.ts';
import { blockedCalls } from './guard-calls.ts';
import { permissionFor } from './run-call.ts';
import type { TurnContext } from './turn-context.ts';

const OUTCOME_UNKNOWN = '[outcome unknown: the process stopped while this ran]';
const NOT_RUN = '[not run: the process stopped before this call began]';

/** Records what is known of the others and returns the calls that may run again, in order. */
export async function settleInterruptedCalls(turn: TurnContext): Promise<readonly ToolCall[]> {
  const { thread, toolbox } = turn;
  const open = thread.openCalls;
  const bound = new Map(open.map((call) => [call, toolbox.bind(call.name, call.arguments)]));
  // A tool that is not there now may have been there when the call began, as those of servers are.
  const gone = open.filter((call) => isGone(bound.get(call)));
  const blocked = blockedCalls(turn);
  const known = open.filter(
    (call) => !blocked.has(call) && hasEffects(turn, call, bound.get(call)),
  );
  // Calls with effects run one by one, and each result is on disk before the next begins: only the
  // first one without a result can have been running.
  const [first] = known;
  const effects = open.filter((call) => gone.includes(call) || known.includes(call));
  const entries = effects.map((call) =>
    call === first || gone.includes(call)
      ? toolEntry(turn, call, { status: 'unknown', text: OUTCOME_UNKNOWN })
      : toolEntry(turn, call, { status: 'failed', text: NOT_RUN, failure: 'cancelled' }),
  );
  if (entries.length > 0) {
    turn.log.warn('tool calls were interrupted', { calls: entries.map(({ name }) => name) });
  }
  await thread.record(entries, { durable: true });
  return open.filter((call) => !effects.includes(call));
}

const isGone = (bound: BoundCall | undefined) =>
  bound?.kind === 'refused' && bound.outcome.failure === 'unknown_tool';

function hasEffects(turn: TurnContext, call: ToolCall, bound: BoundCall | undefined): boolean {
  if (bound === undefined || bound.kind === 'refused' || isRepeatable(bound.access)) return false;
  // It did not run: asking the owner again changes nothing.
  return permissionFor(turn, call, bound) === 'free';
}

export function toolEntry(
  { input, clock, thread }: TurnContext,
  call: ToolCall,
  result: Pick<ToolEntry, 'status' | 'text' | 'failure' | 'isBlocked'>,
): ToolEntry {
  const resultId = resultIdOf(input.turnId, thread.ordinalOf(call));
  return {
    role: 'tool',
    turnId: input.turnId,
    callId: call.id,
    name: call.name,
    ...(resultId === undefined ? {} : { resultId }),
    ...result,
    at: clock.now(),
  };
}
