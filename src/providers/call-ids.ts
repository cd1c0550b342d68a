// Ids of tool calls as they enter our transcript: never empty, never used before in this conversation.
// Some vendors count from zero in every answer, some send none.

import { type CallId, callId } from '../kernel/message/ids.ts';
import type { ModelMessage } from '../kernel/message/transcript.ts';

export type MintCallId = (offered: string) => CallId;

export function createCallIds(messages: readonly ModelMessage[]): MintCallId {
  const taken = new Set<string>();
  for (const message of messages) {
    if (message.role === 'assistant') for (const call of message.toolCalls) taken.add(call.id);
    if (message.role === 'tool') taken.add(message.callId);
  }
  /** By what was offered: the number behind the last id made of it. */
  const last = new Map<string, number>();
  return (offered) => {
    const stem = offered === '' ? 'call' : offered;
    let id = offered === '' ? 'call_1' : offered;
    let n = last.get(stem) ?? 1;
    while (taken.has(id)) {
      n += 1;
      id = `${stem}_${n}`;
    }
    last.set(stem, n);
    taken.add(id);
    return callId(id);
  };
}
