// Which answers on record were a supervisor's or a specialist's: told from the tasks around them.

import { isObject, parsed } from './lenient-json.ts';
import { REPORT, TASK } from './supervised-turn.ts';
import type { AssistantEntry, TranscriptEntry } from './transcript.ts';

/** By their roles, as figures about model calls name them; all others have none. */
export function supervisedRoles(
  entries: readonly TranscriptEntry[],
): ReadonlyMap<AssistantEntry, string> {
  const roles = new Map<AssistantEntry, string>();
  let work: { readonly turnId: string; readonly agent: string } | undefined;
  for (const entry of entries) {
    if (entry.role !== 'assistant') continue;
    const { turnId, toolCalls } = entry;
    const [call] = toolCalls;
    if (work?.turnId !== turnId) work = undefined;
    if (call?.name === TASK) {
      roles.set(entry, 'supervisor');
      work = { turnId, agent: agentIn(call.arguments) };
    } else if (work !== undefined && call !== undefined) {
      roles.set(entry, `specialist:${work.agent}`);
      if (call.name === REPORT) work = undefined;
    }
  }
  return roles;
}

function agentIn(json: string): string {
  const args = parsed(json);
  return isObject(args) && typeof args['agent'] === 'string' ? args['agent'] : 'unknown';
}
