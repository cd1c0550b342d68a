// Runs one tool call. The toolbox holds its deadline and turns every failure into a result.

import type { ToolCall, ToolEntry } from '../core/transcript.ts';
import type { BoundCall, ToolContext } from '../tools/tool.ts';
import type { TurnContext } from './turn-context.ts';

export type CallReport = { readonly status: ToolEntry['status']; readonly text: string };

/** Texts one call may send, so that each has a number of its own, the same on every retry. */
const MAX_TEXTS_PER_CALL = 1000;

export async function runCall(
  turn: TurnContext,
  call: ToolCall,
  bound: BoundCall,
): Promise<CallReport> {
  return bound.kind === 'refused' ? bound.outcome : bound.run(contextOf(turn, call));
}

function contextOf(turn: TurnContext, call: ToolCall): ToolContext {
  const { input, clock, settings, signal } = turn;
  const base = turn.thread.ordinalOf(call) * MAX_TEXTS_PER_CALL;
  let texts = 0;
  return {
    session: input.session,
    turnId: input.turnId,
    chat: input.chat,
    signal,
    clock,
    workspace: settings.workspace,
    say(markdown) {
      const ordinal = base + texts;
      texts += 1;
      return input.say(markdown, ordinal);
    },
  };
}
