// Runs one tool call with a deadline that also holds for a tool that ignores it.

import type { ToolCall, ToolEntry } from '../core/transcript.ts';
import type { BoundCall, ToolContext } from '../tools/tool.ts';
import type { TurnContext } from './turn-context.ts';

export type CallReport = { readonly status: ToolEntry['status']; readonly text: string };

/** How long a tool may take to end after it was told to. */
const ABORT_GRACE_MS = 2000;
/** Texts one call may send, so that each has a number of its own on every retry. */
const MAX_TEXTS_PER_CALL = 1000;

class ToolOvertime extends Error {
  override readonly name = 'ToolOvertime';
}

export async function runCall(
  turn: TurnContext,
  call: ToolCall,
  bound: BoundCall,
): Promise<CallReport> {
  if (bound.kind === 'refused') return bound.outcome;
  const { clock, settings } = turn;
  const overtime = new AbortController();
  const signal = AbortSignal.any([turn.signal, overtime.signal]);
  const deadline = clock.timer(settings.toolTimeoutMs, () => overtime.abort(new ToolOvertime()));
  const { promise: abandoned, resolve: abandon } = Promise.withResolvers<undefined>();
  let grace: Disposable | undefined;
  const onAbort = () => {
    grace = clock.timer(ABORT_GRACE_MS, () => abandon(undefined));
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const outcome = await Promise.race([bound.run(contextOf(turn, call, signal)), abandoned]);
    if (outcome !== undefined) return outcome;
    turn.log.warn('tool did not end when told to', { tool: call.name });
    return abandonedReport(settings.toolTimeoutMs);
  } finally {
    signal.removeEventListener('abort', onAbort);
    deadline[Symbol.dispose]();
    grace?.[Symbol.dispose]();
  }
}

function abandonedReport(timeoutMs: number): CallReport {
  const seconds = Math.round(timeoutMs / 1000);
  const text = `[outcome unknown: the tool did not end within ${seconds} s and may still be running]`;
  return { status: 'unknown', text };
}

function contextOf(turn: TurnContext, call: ToolCall, signal: AbortSignal): ToolContext {
  const { input, clock, settings } = turn;
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
