// Makes room in what a model is shown by clearing the oldest results of tools. Much is cleared at once
// and then nothing for many calls, because each time the vendor's prompt cache is lost from there on.
// Every result that goes leaves a line that says how to get it back; the record keeps all.

import type { ToolCall, ToolEntry, TranscriptEntry } from '../../kernel/message/transcript.ts';
import { shortened } from '../../lib/text/cut.ts';
import { entryTokens } from './tokens.ts';

export type ClearingAim = {
  /** Estimated tokens to be freed. */
  readonly excessTokens: number;
  /** Below this it is not worth to lose the prompt cache. */
  readonly worthTokens: number;
  /** Newest results that stay. */
  readonly keepNewest: number;
  /** Of these at most, estimated: in a small window a few results fill it. */
  readonly keepTokens: number;
};

/** Names a result within its conversation. */
export type ResultKey = string;

/** A line in place of a shorter text would free nothing. */
const MIN_CLEARED_CHARS = 600;
const MAX_ABOUT_CHARS = 160;
const CLEARED = /^\[result of [^\n]{1,400} cleared to save room; [^\n]{1,80}\]$/;

export const resultKey = ({ turnId, callId, at }: ToolEntry): ResultKey =>
  `${turnId} ${callId} ${at}`;

/**
 * Which results to clear beside those of `cleared`, oldest first; nothing where it is not worth it.
 * What the model has not answered yet stays: it was never read.
 */
export function resultsToClear(
  entries: readonly TranscriptEntry[],
  cleared: ReadonlySet<ResultKey>,
  { excessTokens, worthTokens, keepNewest, keepTokens }: ClearingAim,
): readonly ResultKey[] {
  const read = entries.slice(0, Math.max(0, entries.findLastIndex(isAnswer)));
  const unread = entries.slice(read.length).filter(isResult).length;
  const results = read.filter(isResult);
  const kept = Math.min(Math.max(0, keepNewest - unread), newestWithin(results, keepTokens));
  const old = results.slice(0, Math.max(0, results.length - kept));
  const keys: ResultKey[] = [];
  let freed = 0;
  for (const entry of old) {
    if (freed >= excessTokens) break;
    const key = resultKey(entry);
    if (cleared.has(key) || entry.text.length < MIN_CLEARED_CHARS) continue;
    keys.push(key);
    freed += entryTokens(entry) - entryTokens(clearedResult(entry, undefined, true));
  }
  return freed >= worthTokens ? keys : [];
}

/** How many of the newest take no more. */
function newestWithin(results: readonly ToolEntry[], maxTokens: number): number {
  let left = maxTokens;
  const tooMuch = results.findLastIndex((result) => {
    left -= entryTokens(result);
    return left < 0;
  });
  return results.length - 1 - tooMuch;
}

const isAnswer = ({ role }: TranscriptEntry) => role === 'assistant';
const isResult = (entry: TranscriptEntry): entry is ToolEntry => entry.role === 'tool';

/** Those of `keys` that are still in view. */
export function clearedAmong(
  entries: readonly TranscriptEntry[],
  keys: ReadonlySet<ResultKey>,
): ReadonlySet<ResultKey> {
  if (keys.size === 0) return keys;
  return new Set(
    entries
      .filter(isResult)
      .map(resultKey)
      .filter((key) => keys.has(key)),
  );
}

/** The same entries with a line in place of each cleared result. `canReadBack`: read_result is there. */
export function withCleared(
  entries: readonly TranscriptEntry[],
  cleared: ReadonlySet<ResultKey>,
  canReadBack: boolean,
): readonly TranscriptEntry[] {
  const calls = new Map<string, ToolCall>();
  return entries.map((entry) => {
    if (entry.role === 'assistant') {
      for (const call of entry.toolCalls) calls.set(`${entry.turnId} ${call.id}`, call);
    }
    if (entry.role !== 'tool' || !cleared.has(resultKey(entry))) return entry;
    if (isCleared(entry)) return entry;
    return clearedResult(entry, calls.get(`${entry.turnId} ${entry.callId}`), canReadBack);
  });
}

/** Whether there is only the line in its place. */
export const isCleared = ({ text }: ToolEntry) => CLEARED.test(text);

/** What it showed is gone with it; that words of others were read stays true. */
export function clearedResult(
  entry: ToolEntry,
  call: Pick<ToolCall, 'arguments'> | undefined,
  canReadBack: boolean,
): ToolEntry {
  const { media: _, ...rest } = entry;
  const about = aboutOf(call?.arguments ?? '');
  const size = entry.text.length.toLocaleString('en-US');
  const id = canReadBack ? entry.resultId : undefined;
  const back =
    id === undefined
      ? 'call the tool again if it is needed'
      : `read_result with id "${id}" shows it again`;
  const what = `${entry.name}${about === '' ? '' : ` ${about}`}`;
  const text = `[result of ${what}, ${size} characters, cleared to save room; ${back}]`;
  return { ...rest, text };
}

/** The arguments on one line. */
function aboutOf(json: string): string {
  const plain = json.replace(/\s+/g, ' ').trim();
  if (plain === '' || plain === '{}') return '';
  return shortened(plain, MAX_ABOUT_CHARS);
}
