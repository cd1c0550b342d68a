// Counts the texts that tools have sent to the chat: after one, an empty answer is no failure.

import type { ToolCall, ToolEntry } from '../core/transcript.ts';
import type { Toolbox } from '../tools/tool.ts';

export function countSent(
  calls: readonly ToolCall[],
  results: readonly ToolEntry[],
  toolbox: Toolbox,
): number {
  const done = new Set(
    results.filter(({ status }) => status === 'ok').map((entry) => entry.callId),
  );
  return calls.filter((call) => {
    const bound = toolbox.bind(call.name, call.arguments);
    if (!done.has(call.id) || bound.kind !== 'ready') return false;
    return bound.accessIn({ isTainted: false }) === 'say';
  }).length;
}
