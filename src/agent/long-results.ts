// What the model is shown of a result that is too long: a briefing, where it can read on; else the
// beginning and the end, as the toolbox cut it.

import { briefingOf } from '../features/modes/rules/briefing.ts';
import type { ToolCall } from '../kernel/message/transcript.ts';
import { wrapUntrusted } from '../kernel/message/untrusted.ts';
import { resultIdOf } from '../kernel/sessions/rules/earlier.ts';
import { newBoundary } from '../lib/boundary.ts';
import type { ToolOutcome } from '../tools/tool.ts';
import type { CallReport } from './call-report.ts';
import type { CallTurn } from './turn-context.ts';

const READER = 'read_result';

/** Whether the model can ask for results that it is shown no more, or not whole. */
export function canReadBack({ toolbox, rights }: Pick<CallTurn, 'toolbox' | 'rights'>): boolean {
  return toolbox.offered(rights.current).specs.some(({ name }) => name === READER);
}

export function gated(
  turn: CallTurn,
  call: ToolCall,
  { whole, ...outcome }: ToolOutcome,
): CallReport {
  const id = resultIdOf(turn.input.turnId, turn.thread.ordinalOf(call));
  if (whole === undefined || id === undefined || !canReadBack(turn)) return outcome;
  const { head, body } = briefingOf(whole, id, turn.settings.maxResultChars);
  const shown =
    outcome.isForeign === true && body !== ''
      ? wrapUntrusted(`from result ${id}`, [{ text: body }], newBoundary())
      : body;
  return { ...outcome, text: shown === '' ? head : `${head}\n${shown}`, whole };
}
