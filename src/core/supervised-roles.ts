// Who of several worked on a turn, told from what it recorded: which answers were a supervisor's or a
// specialist's, and what was asked of whom.

import { shortened } from './cut.ts';
import { isObject, parseJson } from './fields.ts';
import { REPORT, TASK } from './supervised-turn.ts';
import type { AssistantEntry, TranscriptEntry } from './transcript.ts';
import { roundsOf } from './turn-rounds.ts';

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
  const args = parseJson(json);
  return isObject(args) && typeof args['agent'] === 'string' ? args['agent'] : 'unknown';
}

const WORDS_CHARS = 160;

/** For people, a line for each task of a turn: whom the supervisor asked what, why, and what came of it. */
export function supervisedSteps(own: readonly TranscriptEntry[]): readonly string[] {
  return roundsOf(own).flatMap(([first]) => {
    if (first?.call.name === TASK) {
      const { instructions, reasoning } = textsIn(first.call.arguments);
      const why = reasoning === '' ? '' : ` (${shortened(reasoning, WORDS_CHARS)})`;
      const agent = agentIn(first.call.arguments);
      return [`the supervisor asked ${agent}: ${shortened(instructions, WORDS_CHARS)}${why}`];
    }
    if (first?.call.name !== REPORT) return [];
    const how = first.result?.status === 'ok' ? 'handed its work back' : 'gave no result';
    return [`${agentIn(first.call.arguments)} ${how}`];
  });
}

function textsIn(json: string) {
  const args = parseJson(json);
  const textOf = (key: string) =>
    isObject(args) && typeof args[key] === 'string' ? args[key].replace(/\s+/g, ' ').trim() : '';
  return { instructions: textOf('instructions'), reasoning: textOf('reasoning') };
}
