// Earlier turns in less and less detail: the newest as they were, those before with their long texts
// shortened, older ones as what was asked and what was answered, in a line or two. Every cut says where
// the whole is. The border moves in steps, so that most turns begin with the same words as the last.

import { type DescribedTool, sized } from '../../../agent/rules/tokens.ts';
import type { Round } from '../../../agent/rules/turn-closing.ts';
import { firstSeqOf, type TurnId } from '../../../kernel/message/ids.ts';
import type {
  AssistantEntry,
  TranscriptEntry,
  UserEntry,
} from '../../../kernel/message/transcript.ts';
import { shortened, truncateText } from '../../../lib/text/cut.ts';
import type { ProprioceptionConfig } from '../settings.ts';

const LIGHT_TEXT_CHARS = 1200;
const LIGHT_RESULT_CHARS = 400;
const CONDENSED_CHARS = 240;
/** In a message that reports the end of a subagent: its result is nowhere else. Stored ones say "helper". */
const SUBAGENT_END = /\[A (?:subagent|helper) you started has ended/;

/** Summaries and the turn that runs are left alone. */
export function fadedTurns(
  entries: readonly TranscriptEntry[],
  current: TurnId,
  { rawWindow, lightWindow: light }: Pick<ProprioceptionConfig, 'rawWindow' | 'lightWindow'>,
  canReadBack: boolean,
): readonly TranscriptEntry[] {
  const turns = [...new Set(entries.flatMap(turnOf))].filter((turn) => turn !== current);
  const lightWindow = Math.max(rawWindow, light);
  const faded = new Set(turns.slice(0, stepsBack(turns.length, rawWindow, rawWindow)));
  const condensed = new Set(turns.slice(0, stepsBack(turns.length, lightWindow, rawWindow)));
  if (faded.size === 0) return entries;
  return entries.flatMap((entry): readonly TranscriptEntry[] => {
    const [turn] = turnOf(entry);
    if (turn === undefined || !faded.has(turn)) return [entry];
    const hint = hintFor(turn, canReadBack);
    return condensed.has(turn) ? condensedEntry(entry, hint) : [lightEntry(entry, hint)];
  });
}

/** How many of the oldest lie outside of the window, in whole steps. */
const stepsBack = (turns: number, window: number, step: number) =>
  Math.max(0, Math.floor((turns - window) / step) * step);

const turnOf = (entry: TranscriptEntry): readonly TurnId[] =>
  'turnId' in entry ? [entry.turnId] : [];

function hintFor(turn: TurnId, canReadBack: boolean): string {
  const number = firstSeqOf(turn);
  return canReadBack && number !== undefined
    ? `shortened; read_earlier with from: ${number} shows it`
    : 'shortened';
}

function lightEntry(entry: TranscriptEntry, hint: string): TranscriptEntry {
  if (entry.role === 'tool') return shorter(entry, LIGHT_RESULT_CHARS, hint);
  if (entry.role === 'user' && entry.isForeign === true) return entry;
  if (entry.role === 'user' || entry.role === 'assistant') {
    return shorter(entry, LIGHT_TEXT_CHARS, hint);
  }
  return entry;
}

/** A call goes with its result. */
function condensedEntry(entry: TranscriptEntry, hint: string): readonly TranscriptEntry[] {
  if (entry.role === 'tool') return [];
  if (entry.role === 'user') return [shorter(entry, CONDENSED_CHARS, hint)];
  if (entry.role !== 'assistant') return [entry];
  if (entry.isDraft === true) return [];
  return [shorter(withoutCalls(entry, hint), CONDENSED_CHARS, hint)];
}

function withoutCalls(entry: AssistantEntry, hint: string): AssistantEntry {
  const { toolCalls, text } = entry;
  if (toolCalls.length === 0) return { ...entry, thinking: [] };
  const called = `[called ${toolCalls.map(({ name }) => name).join(', ')}; ${hint}]`;
  return {
    ...entry,
    text: text.trim() === '' ? called : `${text}\n${called}`,
    toolCalls: [],
    thinking: [],
  };
}

type Texted = UserEntry | AssistantEntry | Extract<TranscriptEntry, { role: 'tool' }>;

function shorter<T extends Texted>(entry: T, maxChars: number, hint: string): T {
  if (entry.text.length <= maxChars || SUBAGENT_END.test(entry.text)) return entry;
  // A cut would separate untrusted content from its marks.
  const text =
    'isForeign' in entry
      ? `[${entry.text.length.toLocaleString('en-US')} characters with untrusted content, ${hint}]`
      : truncateText(entry.text, maxChars, hint);
  return text.length < entry.text.length ? { ...entry, text } : entry;
}

// What a model is told of its own work from time to time, and which of its tools the work at hand
// needs: told by the tools it used last.

type WorkPhase = 'beginning' | 'researching' | 'changing' | 'reporting';

const PHASES: Readonly<Record<Exclude<WorkPhase, 'beginning'>, ReadonlySet<string>>> = {
  researching: new Set([
    ...['read_file', 'list_dir', 'search_files', 'web_search', 'web_fetch', 'read_document'],
    ...['recall', 'session_search', 'read_earlier', 'expand', 'read_result', 'check_inbox'],
    'search',
  ]),
  changing: new Set(['write_file', 'edit_file', 'exec', 'remember', 'cron', 'plan']),
  reporting: new Set(['message', 'send_email', 'send_file', 'ask_user']),
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
    if (PHASES.researching.has(name)) return 'researching';
    if (PHASES.changing.has(name)) return 'changing';
    if (PHASES.reporting.has(name)) return 'reporting';
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
    `Called so far: ${done}.${asked} Does your next step serve the request?]`
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
