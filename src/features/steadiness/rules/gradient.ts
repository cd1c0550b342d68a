// Shows earlier turns in decreasing detail: the newest unchanged, those before with shortened long
// texts, older ones as one or two lines of question and answer. Each cut says where the whole text
// is. The borders move in steps, so that most turns share the prompt prefix of the last one.

import { type DescribedTool, sized } from '../../../agent/rules/tokens.ts';
import type { Round } from '../../../agent/rules/turn-closing.ts';
import { firstSeqOf, type TurnId } from '../../../kernel/message/ids.ts';
import type {
  AssistantEntry,
  TranscriptEntry,
  UserEntry,
} from '../../../kernel/message/transcript.ts';
import { oneLine, shortened, truncateText } from '../../../lib/text/cut.ts';
import type { ProprioceptionConfig } from '../settings.ts';

const LIGHT_TEXT_CHARS = 1200;
const LIGHT_RESULT_CHARS = 400;
const CONDENSED_CHARS = 240;
/**
 * Matches a message that reports the end of a subagent: its result is nowhere else. Stored messages
 * say `helper`.
 */
const SUBAGENT_END = /\[A (?:subagent|helper) you started has ended/;

/** Leaves summaries and the current turn unchanged. */
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

/** Number of the oldest turns outside the window, in whole steps. */
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

/** A call is dropped with its result. */
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

// Periodic notes about the model's own work, and the tools that the current phase of work needs.
// The last used tools determine the phase.

type WorkPhase = 'beginning' | 'researching' | 'changing' | 'reporting';

const PHASES: Readonly<Record<Exclude<WorkPhase, 'beginning'>, ReadonlySet<string>>> = {
  researching: new Set([
    ...['read_file', 'list_dir', 'search_files', 'web_search', 'web_fetch', 'read_document'],
    ...[
      'recall',
      'session_search',
      'semantic_search',
      'read_earlier',
      'expand',
      'read_result',
      'check_inbox',
    ],
    'search',
  ]),
  changing: new Set(['write_file', 'edit_file', 'exec', 'remember', 'cron', 'plan']),
  reporting: new Set(['message', 'send_email', 'send_file', 'ask_user']),
};
/** Described in every phase. */
const CORE: ReadonlySet<string> = new Set([
  ...['read_file', 'write_file', 'list_dir', 'read_result', 'read_earlier', 'recall', 'remember'],
  ...['expand', 'web_search'],
]);
/** Number of newest rounds that determine the phase. */
const LOOKED_AT = 3;

/** The newest tool that belongs to a phase decides. */
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

/** `pressure`: used share of the context window, 0 to 1. */
export function isGroundingDue(rounds: number, interval: number, pressure: number): boolean {
  if (interval === 0 || rounds === 0 || pressure > SILENT_ABOVE) return false;
  return rounds % (pressure > HALVED_ABOVE ? interval * 2 : interval) === 0;
}

const MAX_QUESTION_CHARS = 300;
const MAX_TOOLS = 8;

/** `question`: the text of the question; undefined where it must not be quoted. */
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
  const words = oneLine(text);
  return JSON.stringify(shortened(words, MAX_QUESTION_CHARS));
}

/**
 * Shortens the tools that the phase hardly needs: they keep their place and name, with the first
 * sentence of the description and without parameters. After a wrong call of one of them the error
 * states its parameters and it is described in full again. `rounds`: of the turn.
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
