// Keeps a thread below the hard limit: whole oldest turns go first, then the oldest tool results of
// the turn that runs and what its oldest calls were given, then the middle of its longest texts. Every
// step leaves a marker. The transcript on disk keeps everything.

import { clearedResult, isCleared } from './clear-results.ts';
import type { TurnId } from './ids.ts';
import { shortArguments } from './short-arguments.ts';
import { entriesTokens, entryTokens } from './tokens.ts';
import type { AssistantEntry, TranscriptEntry } from './transcript.ts';
import { truncateText } from './truncate.ts';

export type FittedThread = {
  readonly entries: readonly TranscriptEntry[];
  /** Messages left out by this fit. */
  readonly omitted: number;
};

/** Texts are not cut below this. */
const MIN_TEXT_CHARS = 500;

/**
 * The newest entries of at most `maxTokens`; those of `current` are always among them, and so is the
 * summary of what came before.
 */
export function fitEntries(
  entries: readonly TranscriptEntry[],
  current: TurnId,
  maxTokens: number,
  canReadBack = false,
): FittedThread {
  const summaries = entries.filter(({ role }) => role === 'summary');
  const others = entries.filter(({ role }) => role !== 'summary');
  const dropped = dropOldestTurns(others, current, maxTokens - entriesTokens(summaries));
  const fitted = { ...dropped, entries: [...summaries, ...dropped.entries] };
  const shrunk = shrinkOldest(fitted.entries, maxTokens, canReadBack);
  return { entries: shortenTexts(shrunk, maxTokens), omitted: fitted.omitted };
}

/** Without all that was said before the turn `current`. */
export function onlyTurn(entries: readonly TranscriptEntry[], current: TurnId): FittedThread {
  return dropOldestTurns(entries, current, 0);
}

function dropOldestTurns(
  entries: readonly TranscriptEntry[],
  current: TurnId,
  maxTokens: number,
): FittedThread {
  let total = entriesTokens(entries);
  let start = 0;
  while (start < entries.length && total > maxTokens) {
    const turn = turnOf(entries[start]);
    if (turn === current) break;
    let end = start;
    while (end < entries.length && turnOf(entries[end]) === turn) end += 1;
    total -= entriesTokens(entries.slice(start, end));
    start = end;
  }
  return {
    entries: entries.slice(start),
    omitted: entries.slice(0, start).filter(isMessage).length,
  };
}

const turnOf = (entry: TranscriptEntry | undefined) =>
  entry !== undefined && 'turnId' in entry ? entry.turnId : undefined;

const isMessage = ({ role }: TranscriptEntry) =>
  role === 'user' || role === 'assistant' || role === 'tool';

/** From the oldest round on, because what was read and written last is needed most. */
function shrinkOldest(
  entries: readonly TranscriptEntry[],
  maxTokens: number,
  canReadBack: boolean,
) {
  let excess = entriesTokens(entries) - maxTokens;
  return entries.map((entry): TranscriptEntry => {
    if (excess <= 0) return entry;
    const smaller = smallerEntry(entry, canReadBack);
    const freed = entryTokens(entry) - entryTokens(smaller);
    if (freed <= 0) return entry;
    excess -= freed;
    return smaller;
  });
}

function smallerEntry(entry: TranscriptEntry, canReadBack: boolean): TranscriptEntry {
  if (entry.role === 'assistant') return withShortCalls(entry);
  if (entry.role !== 'tool' || isCleared(entry)) return entry;
  return clearedResult(entry, undefined, canReadBack);
}

function withShortCalls(entry: AssistantEntry): AssistantEntry {
  const toolCalls = entry.toolCalls.map((call) => {
    return { ...call, arguments: shortArguments(call.arguments) };
  });
  return { ...entry, toolCalls };
}

function shortenTexts(entries: readonly TranscriptEntry[], maxTokens: number) {
  let fitted = entries;
  while (entriesTokens(fitted) > maxTokens) {
    const longest = fitted.reduce((a, b) => (textOf(b).length > textOf(a).length ? b : a), NOTHING);
    const length = textOf(longest).length;
    if (length <= MIN_TEXT_CHARS) break;
    const text = truncateText(
      textOf(longest),
      Math.max(MIN_TEXT_CHARS, Math.floor(length / 2)),
      'too long for the context window',
    );
    if (text.length >= length) break;
    fitted = fitted.map((entry) => (entry === longest ? { ...entry, text } : entry));
  }
  return fitted;
}

const NOTHING: TranscriptEntry = { role: 'reset', at: 0 };
const textOf = (entry: TranscriptEntry) => ('text' in entry ? entry.text : '');
