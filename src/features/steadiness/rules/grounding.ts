// What a model is told of its own work from time to time, and which of its tools the work at hand
// needs: told by the tools it used last.

import { type DescribedTool, sized } from '../../../agent/rules/tool-room.ts';
import type { Round } from '../../../agent/rules/turn-closing.ts';
import { shortened } from '../../../lib/text/cut.ts';

export type WorkPhase = 'beginning' | 'finding out' | 'changing' | 'telling others';

const PHASES: Readonly<Record<Exclude<WorkPhase, 'beginning'>, ReadonlySet<string>>> = {
  'finding out': new Set([
    ...['read_file', 'list_dir', 'search_files', 'web_search', 'web_fetch', 'read_document'],
    ...['recall', 'session_search', 'read_earlier', 'expand', 'read_result', 'check_inbox'],
    'search',
  ]),
  changing: new Set(['write_file', 'edit_file', 'exec', 'remember', 'cron', 'plan']),
  'telling others': new Set(['message', 'send_email', 'send_file', 'ask_user']),
};
/** Needed at any time: these are described in every phase. */
const CORE: ReadonlySet<string> = new Set([
  ...['read_file', 'write_file', 'list_dir', 'read_result', 'read_earlier', 'recall', 'remember'],
  ...['expand', 'web_search'],
]);
/** Rounds that tell what is being done. */
const LOOKED_AT = 3;

/** By the newest rounds; the newest tool that belongs to a phase decides. */
export function phaseOf(rounds: readonly Round[]): WorkPhase {
  const names = rounds.slice(-LOOKED_AT).flatMap((round) => round.map(({ call }) => call.name));
  for (const name of names.toReversed()) {
    if (PHASES['finding out'].has(name)) return 'finding out';
    if (PHASES.changing.has(name)) return 'changing';
    if (PHASES['telling others'].has(name)) return 'telling others';
  }
  return 'beginning';
}

const HALVED_ABOVE = 0.7;
const SILENT_ABOVE = 0.85;

/** `pressure`: how full the window is, 0 to 1. */
export function isGroundingDue(rounds: number, interval: number, pressure: number): boolean {
  if (interval === 0 || rounds === 0 || pressure > SILENT_ABOVE) return false;
  return rounds % (pressure > HALVED_ABOVE ? interval * 2 : interval) === 0;
}

const MAX_QUESTION_CHARS = 300;
const MAX_TOOLS = 8;

/** `question`: in the words of whoever asked; undefined where these are not to be quoted. */
export function groundingNote(
  rounds: readonly Round[],
  question: string | undefined,
  maxRounds: number,
): string {
  const counts = new Map<string, number>();
  let failed = 0;
  for (const { call, result } of rounds.flat()) {
    counts.set(call.name, (counts.get(call.name) ?? 0) + 1);
    if (result?.status !== 'ok') failed += 1;
  }
  const most = [...counts].sort(([, one], [, other]) => other - one).slice(0, MAX_TOOLS);
  const used = most.map(([name, times]) => (times === 1 ? name : `${name} ${times} times`));
  const done = `${used.join(', ')}${failed === 0 ? '' : `, ${failed} of these without success`}`;
  const asked = question === undefined ? '' : ` What was asked: ${quoted(question)}.`;
  return (
    `[Where you are: ${phaseOf(rounds)}, after ${rounds.length} of at most ${maxRounds} rounds. ` +
    `Called so far: ${done}.${asked} Is what you do now for what was asked?]`
  );
}

function quoted(text: string): string {
  const words = text.replace(/\s+/g, ' ').trim();
  return JSON.stringify(shortened(words, MAX_QUESTION_CHARS));
}

/**
 * Tools the phase hardly needs keep their place and name, with the first sentence of what they do and
 * no parameters; one that is called all the same is told what it takes if that was wrong, and is
 * described whole from then on. `rounds`: of the turn.
 */
export function toolsInPhase<T extends DescribedTool>(
  tools: readonly T[],
  rounds: readonly Round[],
): readonly T[] {
  const phase = phaseOf(rounds);
  if (phase === 'beginning') return tools;
  const called = new Set(rounds.flatMap((round) => round.map(({ call }) => call.name)));
  return tools.map((tool) => {
    const isNeeded = CORE.has(tool.name) || PHASES[phase].has(tool.name) || called.has(tool.name);
    return isNeeded ? tool : inShort(tool);
  });
}

function inShort<T extends DescribedTool>(tool: T): T {
  const [description = tool.description] = /^[\s\S]*?[.!?](?=\s|$)/.exec(tool.description) ?? [];
  return sized({ ...tool, description, schema: ANYTHING });
}

const ANYTHING = { type: 'object', properties: {} } as const;
