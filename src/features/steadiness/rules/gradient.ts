// Earlier turns in less and less detail: the newest as they were, those before with their long texts
// shortened, older ones as what was asked and what was answered, in a line or two. Every cut says where
// the whole is. The border moves in steps, so that most turns begin with the same words as the last.

import type { TurnId } from '../../../kernel/message/ids.ts';
import { firstSeqOf } from '../../../kernel/message/ids.ts';
import type {
  AssistantEntry,
  TranscriptEntry,
  UserEntry,
} from '../../../kernel/message/transcript.ts';
import { truncateText } from '../../../lib/text/cut.ts';

export type GradientWindows = {
  /** Newest turns that stay as they are. */
  readonly rawWindow: number;
  /** Turns of which only long texts are shortened, the newest included. */
  readonly lightWindow: number;
};

const LIGHT_TEXT_CHARS = 1200;
const LIGHT_RESULT_CHARS = 400;
const CONDENSED_CHARS = 240;
/** Stands in a message that tells of a helper's end: what it found stands nowhere else. */
const HELPER_END = '[A helper you started has ended';

/** Summaries and the turn that runs are left alone. */
export function fadedTurns(
  entries: readonly TranscriptEntry[],
  current: TurnId,
  windows: GradientWindows,
  canReadBack: boolean,
): readonly TranscriptEntry[] {
  const turns = [...new Set(entries.flatMap(turnOf))].filter((turn) => turn !== current);
  const { rawWindow } = windows;
  const lightWindow = Math.max(rawWindow, windows.lightWindow);
  const light = turns.slice(0, stepsBack(turns.length, rawWindow, rawWindow));
  const condensed = new Set(turns.slice(0, stepsBack(turns.length, lightWindow, rawWindow)));
  if (light.length === 0) return entries;
  const faded = new Set(light);
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
  if (entry.text.length <= maxChars || entry.text.includes(HELPER_END)) return entry;
  // Cut open, words of others would no longer stand between their marks.
  const text =
    'isForeign' in entry
      ? `[${entry.text.length.toLocaleString('en-US')} characters with words of others, ${hint}]`
      : truncateText(entry.text, maxChars, hint);
  return text.length < entry.text.length ? { ...entry, text } : entry;
}
