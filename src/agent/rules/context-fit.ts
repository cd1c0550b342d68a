// Fits a thread into the hard limit: drops whole oldest turns, up to the last exchange, then
// shortens the oldest tool results and call arguments of the rest, then the middle of its longest
// texts, then the untrusted part of the summary, its trusted text last. Every step leaves a marker.
// The transcript on the disk keeps everything.

import type { TurnId } from '../../kernel/message/ids.ts';
import type {
  AssistantEntry,
  NodeStyle,
  ToolCall,
  ToolEntry,
  TranscriptEntry,
} from '../../kernel/message/transcript.ts';
import { isMessage, turnOf } from '../../kernel/sessions/rules/carry.ts';
import { readJson } from '../../lib/json/json.ts';
import { oneLine, shortened, truncateText } from '../../lib/text/cut.ts';
import { trustedOnly } from './context-marks.ts';
import type { TaintSource } from './taint.ts';
import { entriesTokens, entryTokens } from './tokens.ts';

/** Texts are not cut below this. */
const MIN_TEXT_CHARS = 500;
/** Length of a shortened tool result. */
const SHORT_RESULT_TOKENS = 300;

/**
 * The newest entries of at most `maxTokens`; always includes those of `current`, the exchange
 * before it and the summary. Where turns are left out, the rest takes at most `keepTokens`, so that
 * not every call leaves out another turn.
 */
export function fitEntries(
  entries: readonly TranscriptEntry[],
  current: TurnId,
  maxTokens: number,
  canReadBack = false,
  keepTokens = maxTokens,
) {
  const summaries = entries.filter(({ role }) => role === 'summary');
  const others = entries.filter(({ role }) => role !== 'summary');
  const kept = new Set([current, lastExchange(others, current)]);
  const isTooLong = entriesTokens(entries) > maxTokens;
  const room = isTooLong ? keepTokens - entriesTokens(summaries) : Number.POSITIVE_INFINITY;
  const dropped = dropOldestTurns(others, kept, room);
  const fitted = { ...dropped, entries: [...summaries, ...dropped.entries] };
  const shrunk = shrinkOldest(fitted.entries, maxTokens, canReadBack);
  return { entries: shortenTexts(shrunk, maxTokens), omitted: fitted.omitted };
}

/**
 * The least that `fitEntries` can reach without shortening a text: the summary, the exchange before
 * `current` and the turn itself, with short results.
 */
export function floorTokens(entries: readonly TranscriptEntry[], current: TurnId): number {
  const kept = new Set([current, lastExchange(entries, current)]);
  return entries
    .filter((entry) => entry.role === 'summary' || kept.has(turnOf(entry)))
    .reduce((sum, entry) => {
      const tokens = entryTokens(entry);
      return sum + (entry.role === 'tool' ? Math.min(tokens, SHORT_RESULT_TOKENS) : tokens);
    }, 0);
}

/** The newest turn before `current` with a message. */
const lastExchange = (entries: readonly TranscriptEntry[], current: TurnId) =>
  turnOf(entries.findLast((entry) => isMessage(entry) && turnOf(entry) !== current));

/** Only the entries of the turn `current`. */
export function onlyTurn(entries: readonly TranscriptEntry[], current: TurnId) {
  return dropOldestTurns(entries, new Set([current]), 0);
}

function dropOldestTurns(
  entries: readonly TranscriptEntry[],
  kept: ReadonlySet<TurnId | undefined>,
  maxTokens: number,
) {
  let total = entriesTokens(entries);
  let start = 0;
  while (start < entries.length && total > maxTokens) {
    const turn = turnOf(entries[start]);
    if (turn !== undefined && kept.has(turn)) break;
    let end = start;
    while (end < entries.length && turnOf(entries[end]) === turn) end += 1;
    total -= entriesTokens(entries.slice(start, end));
    start = end;
  }
  return {
    entries: entries.slice(start),
    /** Messages left out. */
    omitted: entries.slice(0, start).filter(isMessage).length,
  };
}

/** Starts with the oldest round, because the latest results are needed most. */
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
  const said = shortenedEntries(entries, maxTokens, ({ role }) => role !== 'summary');
  const fits = entriesTokens(said) <= maxTokens;
  const kept = fits ? said : said.map((e) => (e.role === 'summary' ? trustedOnly(e) : e));
  return shortenedEntries(kept, maxTokens, ({ role }) => role === 'summary');
}

function shortenedEntries(
  entries: readonly TranscriptEntry[],
  maxTokens: number,
  mayShorten: (entry: TranscriptEntry) => boolean,
) {
  let fitted = entries;
  while (entriesTokens(fitted) > maxTokens) {
    const longest = fitted
      .filter(mayShorten)
      .reduce((a, b) => (textOf(b).length > textOf(a).length ? b : a), NOTHING);
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

// CONTRACT of the context report: what a call uses of a model's context window, for people.

/** Counts are tokens, corrected by the provider's earlier counts. */
export type ContextReport = {
  readonly model: string;
  /** Of the model, or less where the configuration says so. */
  readonly contextTokens: number;
  /** Above this the oldest messages are left out; the rest of the window is for the answer. */
  readonly inputTokens: number;
  /** Above this the conversation is summarised; undefined where that is switched off. */
  readonly summedUpAbove: number | undefined;
  /** The system prompt by parts. */
  readonly prompt: readonly { readonly name: string; readonly tokens: number }[];
  readonly tools: {
    readonly count: number;
    readonly tokens: number;
    /** For lack of room. */
    readonly leftOut: number;
  };
  /** The summary; 0: there is none. */
  readonly summary: number;
  /** Its nodes; empty where it is one text. */
  readonly nodes: readonly {
    readonly id: string;
    readonly style: NodeStyle;
    readonly tokens: number;
  }[];
  /** The working memory; 0: it is not shown. */
  readonly working: number;
  readonly conversation: { readonly messages: number; readonly tokens: number };
  readonly images: number;
  /** Tool results that are replaced by a line. */
  readonly cleared: number;
  /** Entries of the conversation that are left out or shortened. */
  readonly rewritten: number;
  readonly total: number;
  /** What taints the conversation, oldest first; empty: nothing. */
  readonly untrusted: readonly TaintSource[];
  /** Epoch milliseconds until which an owner has ended the taint. */
  readonly trustedUntil: number | undefined;
  /** Whether a provider has counted for this model, so that the estimates are corrected. */
  readonly isCorrected: boolean;
};

// Shortens the arguments of earlier calls: they stay valid JSON of the same shape, with the middle
// of each long text left out.

const MAX_TEXT_CHARS = 500;
const WHY = 'left out of what you see to fit the context window; the call had it all';

/** Returns `json` itself where nothing in it is long. Invalid JSON is cut as a whole. */
function shortArguments(json: string): string {
  if (json.length <= MAX_TEXT_CHARS) return json;
  const read = readJson(json);
  // The form in which invalid arguments are sent to providers.
  const value = read.kind === 'parsed' ? read.value : { unreadable: json };
  const short = JSON.stringify(shortValues(value));
  return short.length < json.length ? short : json;
}

function shortValues(value: unknown): unknown {
  if (typeof value === 'string') return truncateText(value, MAX_TEXT_CHARS, WHY);
  if (Array.isArray(value)) return value.map(shortValues);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shortValues(inner)]));
}

// Clears the oldest tool results from what a model is shown. Much is cleared at once and then
// nothing for many calls, because each clearing invalidates the vendor's prompt cache from there
// on. A cleared result leaves a line that says how to read it again; the record keeps all.

export type ClearingAim = {
  /** Estimated tokens to free. */
  readonly excessTokens: number;
  /** Freeing less is not worth invalidating the prompt cache. */
  readonly worthTokens: number;
  /** Newest results that stay. */
  readonly keepNewest: number;
  /** Estimated limit of these: in a small window a few results fill it. */
  readonly keepTokens: number;
};

/** Identifies a result within its session. */
export type ResultKey = string;

/** Replacing a shorter text by a line would free nothing. */
const MIN_CLEARED_CHARS = 600;
const MAX_ABOUT_CHARS = 160;
const CLEARED = /^\[result of [^\n]{1,400} cleared to save room; [^\n]{1,80}\]$/;

const resultKey = ({ turnId, callId, at }: ToolEntry): ResultKey => `${turnId} ${callId} ${at}`;

/**
 * The results to clear in addition to `cleared`, oldest first; empty where it is not worth it.
 * Results that the model has not answered yet stay: it has not read them.
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

/** How many of the newest fit. */
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

/**
 * The same entries with a line in place of each cleared result. `canReadBack`: the tool read_result
 * is available.
 */
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

/** Whether the result was replaced by a line. */
const isCleared = ({ text }: ToolEntry) => CLEARED.test(text);

/** Drops its media but keeps the mark of untrusted content. */
function clearedResult(
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
  const plain = oneLine(json);
  if (plain === '' || plain === '{}') return '';
  return shortened(plain, MAX_ABOUT_CHARS);
}
