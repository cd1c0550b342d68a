// Rules of summaries: when a conversation is summarised, which part, and which summaries are valid.
// Whole turns are covered, from the oldest on; the newest stay verbatim. compactor.ts calls the
// model.

import type { TurnId } from '../../kernel/message/ids.ts';
import type { SummaryEntry, TranscriptEntry } from '../../kernel/message/transcript.ts';
import { turnOf } from '../../kernel/sessions/rules/carry.ts';
import { onFirstUse } from '../../lib/json/json.ts';
import { keepFirstLines, partOf, truncateText } from '../../lib/text/cut.ts';
import type { CompactionConfig } from '../compaction-settings.ts';
import {
  type CallBudget,
  CHARS_PER_TOKEN,
  entriesTokens,
  textTokens,
  toldTokens,
} from './tokens.ts';

export type CompactionPolicy = Readonly<CompactionConfig> & {
  /** Summaries are written for the model that reads them. */
  readonly forAudience?: true;
};

type CompactionSize = {
  readonly contextTokens: number;
  readonly budget: Pick<CallBudget, 'inputTokens'>;
};

/**
 * `roomTokens`: estimated tokens for the conversation below the watermark, beside prompt and tools.
 */
export type ConversationSize = CompactionSize & { readonly roomTokens: number };

/** Trimming begins where the room for the input ends; a summary has to be there before. */
const ROOM_SHARE = 0.95;
/** Shares of the conversation's room. The rest is for the turns until the next summary. */
const KEPT_SHARE = 0.15;
const SUMMARY_SHARE = 0.3;
const MIN_SUMMARY_TOKENS = 100;
/** Least share for the conversation below the watermark, whatever prompt and tools take. */
const MIN_ROOM_SHARE = 0.25;
/** Share of a summary that the model writes; the rest is for facts that it left out. */
const WRITTEN_SHARE = 0.65;
const MAX_MEDIA = 200;

/** Size of a call above which its conversation is summarised. */
export function watermarkTokens(policy: CompactionPolicy, size: CompactionSize): number {
  const room = size.budget.inputTokens * ROOM_SHARE;
  if (policy.engine === 'lossless') {
    return Math.floor(Math.min((size.contextTokens * policy.lossless.softPercent) / 100, room));
  }
  const share = (size.contextTokens * policy.watermarkPercent) / 100;
  return Math.floor(Math.min(share, policy.watermarkTokens, room));
}

/** Size of a call above which it waits for a summary. */
export function hardTokens({ engine, lossless }: CompactionPolicy, size: CompactionSize): number {
  if (engine !== 'lossless') return size.budget.inputTokens;
  const share = Math.floor((size.contextTokens * lossless.hardPercent) / 100);
  return Math.min(share, size.budget.inputTokens);
}

/**
 * `fixedTokens`: prompt and tools, by the provider's count; `factor`: ratio of its count to the
 * estimate.
 */
export function conversationRoom(
  policy: CompactionPolicy,
  size: CompactionSize,
  { fixedTokens, factor }: { readonly fixedTokens: number; readonly factor: number },
): number {
  const mark = watermarkTokens(policy, size);
  return Math.floor(Math.max(mark - fixedTokens, mark * MIN_ROOM_SHARE) / factor);
}

export const keptTokens = (policy: CompactionPolicy, { roomTokens }: ConversationSize) =>
  Math.floor(Math.min(policy.keepTokens, roomTokens * KEPT_SHARE));

export const maxSummaryTokens = (policy: CompactionPolicy, { roomTokens }: ConversationSize) =>
  Math.floor(
    Math.min(policy.summaryTokens, Math.max(MIN_SUMMARY_TOKENS, roomTokens * SUMMARY_SHARE)),
  );

export type CompactionLimits = {
  readonly keepTokens: number;
  readonly summaryTokens: number;
  /** What the summarising model can read at once. */
  readonly readTokens: number;
};

type CompactionPlan = {
  /** Includes an earlier summary at the head. */
  readonly covered: readonly TranscriptEntry[];
  readonly keepsFrom: TurnId;
};

/** Neighbouring entries of one turn. */
export type Group = { readonly turn: TurnId | undefined; readonly entries: TranscriptEntry[] };

/**
 * The oldest turns in view; undefined where a summary is not worth it. Excludes the last exchange
 * and a running turn; what is too much to read at once is left to the next step.
 */
export function planCompaction(
  window: readonly TranscriptEntry[],
  { keepTokens, summaryTokens, readTokens }: CompactionLimits,
): CompactionPlan | undefined {
  const summary = window.filter(({ role }) => role === 'summary');
  const groups = groupsOf(window.filter(({ role }) => role !== 'summary'));
  const end = endOfCovered(groups, { keepTokens, readTokens });
  const keepsFrom = end === undefined ? undefined : groups[end]?.turn;
  if (keepsFrom === undefined) return undefined;
  const entries = groups.slice(0, end).flatMap((group) => group.entries);
  // Less than a summary takes is not worth a call.
  if (entriesTokens(entries) < summaryTokens) return undefined;
  return { covered: [...summary, ...entries], keepsFrom };
}

/**
 * Index of the first group after those that one step covers: whole turns, before the last exchange
 * and before the index `most`, that leave at most `keepTokens` and can be read at once.
 */
export function endOfCovered(
  groups: readonly Group[],
  { keepTokens, readTokens }: Pick<CompactionLimits, 'keepTokens' | 'readTokens'>,
  most = groups.length,
): number | undefined {
  const tokens = groups.map(({ entries }) => entriesTokens(entries));
  const told = groups.map(({ entries }) => entries.reduce((n, entry) => n + toldTokens(entry), 0));
  const sum = (counts: readonly number[]) => counts.reduce((a, b) => a + b, 0);
  const all = bordersOf(groups);
  const borders = all.filter((index) => index > 0);
  const wanted =
    borders.find((index) => sum(tokens.slice(index)) <= keepTokens) ?? borders.at(-1) ?? 0;
  const last = Math.min(wanted, most, lastExchange(groups, all));
  const possible = borders.filter((index) => index <= last);
  return possible.findLast((index) => sum(told.slice(0, index)) <= readTokens) ?? possible[0];
}

/** Entries without a turn stay with the turn before them. */
export function groupsOf(entries: readonly TranscriptEntry[]): readonly Group[] {
  const groups: Group[] = [];
  for (const entry of entries) {
    const turn = turnOf(entry);
    const last = groups.at(-1);
    if (last !== undefined && (turn === undefined || last.turn === turn)) last.entries.push(entry);
    else groups.push({ turn, entries: [entry] });
  }
  return groups;
}

/**
 * Where a turn begins with a message that was asked in it. A remark of the gateway may name an
 * earlier turn.
 */
function bordersOf(groups: readonly Group[]): readonly number[] {
  const seen = new Set<TurnId>();
  return groups.flatMap(({ turn, entries: [first] }, index) => {
    if (turn === undefined || seen.has(turn)) return [];
    seen.add(turn);
    return first?.role === 'user' && first.seq !== undefined ? [index] : [];
  });
}

/** The border before the newest ended turn and a running one. */
function lastExchange(groups: readonly Group[], borders: readonly number[]): number {
  const isOver = (index: number) =>
    groups.slice(index).some(({ entries }) => entries.some(({ role }) => role === 'turn_end'));
  return borders.findLast(isOver) ?? borders.at(-1) ?? 0;
}

/** Whether the covered entries are unchanged. */
export function stillStands(
  { covered }: Pick<CompactionPlan, 'covered'>,
  window: readonly TranscriptEntry[],
): boolean {
  return JSON.stringify(window.slice(0, covered.length)) === JSON.stringify(covered);
}

/** The model's text cut to the limit, with the important facts that it left out. */
export function withMissing(
  written: string,
  covered: readonly TranscriptEntry[],
  maxTokens: number,
): string {
  const maxChars = maxTokens * CHARS_PER_TOKEN;
  const cut = Math.floor(maxChars * WRITTEN_SHARE);
  const lines = keepFirstLines(written, cut);
  const body = lines === '' ? truncateText(written, cut, 'too long for a summary') : lines;
  return [body, ...missingLines(body, covered, maxChars - body.length)].join('\n');
}

/** The texts of a summary or node; `untrusted`: left out where it has no untrusted part. */
export type WrittenParts = { readonly text: string; readonly untrusted?: string | undefined };

/** Undefined where it would not be shorter than what it replaces. */
export function summaryEntry(
  { covered, keepsFrom }: CompactionPlan,
  { text, untrusted = '' }: WrittenParts,
  at: number,
): SummaryEntry | undefined {
  if (textTokens(text + untrusted) >= entriesTokens(covered)) return undefined;
  const earlier = covered.find((entry) => entry.role === 'summary');
  return {
    role: 'summary',
    text,
    ...untrustedPart(untrusted),
    keepsFrom,
    ...(earlier?.omitted === undefined ? {} : { omitted: earlier.omitted }),
    ...mediaOf(covered),
    at,
  };
}

export const untrustedPart = (untrusted: string) =>
  untrusted === '' ? {} : { untrusted, isForeign: true as const };

/** The newest, each once. */
export function mediaOf(covered: readonly TranscriptEntry[]): Pick<SummaryEntry, 'media'> {
  const all = covered.flatMap((entry) => ('media' in entry ? (entry.media ?? []) : []));
  const media = [...new Map(all.map((one) => [one.media, one])).values()].slice(-MAX_MEDIA);
  return media.length === 0 ? {} : { media };
}

// Checks whether a summary contains what must not get lost: addresses, paths, ids, numbers, names
// and promises that the person or the agent wrote. What is missing is quoted with its context.

const HEADING = 'Also said, word for word:';
/** Of a quoted line. */
const MAX_LINE_CHARS = 120;
const MAX_TERM_CHARS = 200;
/** A line with more terms is a table, which a summary cannot repeat. */
const MAX_TERMS_PER_LINE = 12;
/** The share of the words of a promise that the summary has to contain. */
const KEPT_WORDS_SHARE = 0.6;

/** A whole word with a capital. */
const NAME = "(?:\\p{Lu}\\p{L}+(?:['’-]\\p{L}+)*(?![\\p{L}\\p{N}_-]))";

const termPatterns = onFirstUse((): readonly RegExp[] => [
  /\bhttps?:\/\/[^\s<>"'`)\]}]+[^\s<>"'`)\]}.,;:!?]/gi,
  /(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+/gu,
  /(?:~|\.{1,2})?(?:\/[\p{L}\p{N}._@+-]+){2,}|(?<![\p{L}\p{N}._-])[\p{L}\p{N}._-]+(?:\/[\p{L}\p{N}._-]+)+\.[a-z]\w{0,7}\b/giu,
  /(?<![\p{L}\p{N}_-])[\p{L}\p{N}_-]+\.[a-z][a-z0-9]{1,4}\b/giu,
  /\+?\d[\d\s().-]{6,}\d/g,
  /\d{1,4}(?:[.,:/'-]\d+)+|\d{3,}/g,
  /(?<![\p{L}\p{N}_-])(?=[\p{L}\p{N}_-]*\d)(?=[\p{L}\p{N}_-]*\p{L})[\p{L}\p{N}_-]{4,}/gu,
  /(?<![\p{L}\p{N}_])(?:\p{L}[\p{L}\p{N}]*_[\p{L}\p{N}_]+|\p{Ll}+\p{Lu}[\p{L}\p{N}]+)/gu,
  /["“„«`]([^"“”„«»`\n]{2,60})["”“»`]/g,
  new RegExp(`(?<![.!?:]\\s|^|[\\p{L}\\p{N}])${NAME}|${NAME}(?:\\s+${NAME})+`, 'gmu'),
]);

/** Words of promises, in the most written languages. */
const PROMISES =
  /(?<!\p{L})(?:I['’]ll|I will|I promise|remind|don['’]t forget|deadline|due by|ich werde|erinner\w*|versproch\w*|je vais|rappel\w*|promets|recu[eé]rd\w*|promet\w*|ricord\w*|lembr\w*|напомн\w*|обеща\w*)/iu;

/** Share of the room for new quotes; the rest is for those of an earlier summary. */
const NEW_SHARE = 0.5;

/** Longer lines are split, at white space where there is some. */
const PIECES = /.{1,400}(?:\s|$)|.{1,400}/gsu;

const QUOTES = /^["“„«`]|["”“»`]$/g;

type Line = { readonly text: string; readonly speaker: string };

/**
 * Lines to add to the summary, at most `maxChars` in total including line ends; none = it is
 * complete.
 */
export function missingLines(
  summary: string,
  covered: readonly TranscriptEntry[],
  maxChars: number,
): readonly string[] {
  const room = maxChars - HEADING.length - 1;
  const fresh = quotes(newLines(covered), [summary], Math.floor(room * NEW_SHARE));
  const before = quotes(earlierLines(covered), [summary, ...fresh], room - charsOf(fresh));
  const left = room - charsOf(fresh) - charsOf(before);
  const more = quotes(newLines(covered), [summary, ...fresh, ...before], left);
  const kept = [...before.toReversed(), ...more.toReversed(), ...fresh.toReversed()];
  return kept.length === 0 ? [] : [HEADING, ...kept];
}

/** The share of lines with important terms that the summary does not contain; 0 to 1. */
export function lostShare(summary: string, covered: readonly TranscriptEntry[]): number {
  const lines = [...newLines(covered), ...earlierLines(covered)];
  const all = quotes(lines, [], Number.POSITIVE_INFINITY).length;
  return all === 0 ? 0 : quotes(lines, [summary], Number.POSITIVE_INFINITY).length / all;
}

const charsOf = (lines: readonly string[]) => lines.reduce((sum, line) => sum + line.length + 1, 0);

/** The first ones that fit, of those with a new term. */
function quotes(
  lines: readonly Line[],
  texts: readonly string[],
  maxChars: number,
): readonly string[] {
  const kept: string[] = [];
  let known = texts.map(plain).join(' ');
  let room = maxChars;
  for (const { text, speaker } of lines) {
    const term = missingTerm(text, known);
    if (term === undefined) continue;
    // A quote of an earlier summary was cut already.
    const quote = `- ${speaker}${speaker === '' ? text : around(text, term)}`;
    if (quote.length + 1 > room) continue;
    room -= quote.length + 1;
    kept.push(quote);
    known += ` ${plain(quote)}`;
  }
  return kept;
}

/** The text of earlier summaries, newest first. */
const earlierLines = (covered: readonly TranscriptEntry[]): readonly Line[] =>
  covered
    .flatMap((entry) => (entry.role === 'summary' ? unquoted(entry.text).split('\n') : []))
    .map((text) => ({ text: text.slice(0, 2 * MAX_LINE_CHARS).trim(), speaker: '' }))
    .filter(({ text }) => text !== '')
    .toReversed();

/** The person's text, then the agent's, then its calls; newest first. */
function newLines(covered: readonly TranscriptEntry[]): readonly Line[] {
  const newest = covered.toReversed();
  const pick = (choose: (entry: TranscriptEntry) => string, speaker: string) =>
    newest.flatMap((entry) => linesOf(choose(entry)).map((text): Line => ({ text, speaker })));
  return [
    ...pick((e) => (e.role === 'user' && e.isForeign !== true ? e.text : ''), 'person: '),
    ...pick((entry) => (entry.role === 'assistant' ? entry.text : ''), 'you: '),
    ...pick((e) => (e.role === 'assistant' ? e.toolCalls.map(callText).join('\n') : ''), 'done: '),
  ];
}

const callText = (call: { readonly name: string; readonly arguments: string }) =>
  `${call.name} ${call.arguments}`;

/** A quote of an earlier summary is not quoted twice. */
const unquoted = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== HEADING)
    .map((line) => line.replace(/^- /, ''))
    .join('\n');

const linesOf = (text: string) =>
  text
    .split(/\n|(?<=[.!?])\s+(?=\p{Lu})/u)
    .flatMap((line) => line.match(PIECES) ?? [])
    .map((line) => line.trim())
    .filter((line) => line !== '');

function missingTerm(line: string, known: string): string | undefined {
  const terms = termPatterns()
    .flatMap((pattern) => line.match(pattern) ?? [])
    .map((term) => term.replace(QUOTES, ''))
    .filter((term) => term.trim() !== '' && term.length <= MAX_TERM_CHARS)
    .slice(0, MAX_TERMS_PER_LINE);
  const missing = terms.find((term) => !holds(known, plain(term)));
  if (missing !== undefined) return missing;
  return PROMISES.test(line) && !isTold(line, known) ? line : undefined;
}

function isTold(line: string, known: string): boolean {
  const words = plain(line).match(/[\p{L}\p{N}]{4,}/gu) ?? [];
  const kept = words.filter((word) => known.includes(word));
  return kept.length >= words.length * KEPT_WORDS_SHARE;
}

/** As a whole term: "111" is not in "1112". */
function holds(text: string, term: string): boolean {
  for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + 1)) {
    const around = `${text[at - 1] ?? ' '}${text[at + term.length] ?? ' '}`;
    if (!/[\p{L}\p{N}]/u.test(around)) return true;
  }
  return false;
}

/** Ignores case, white space and separators between groups of three digits. */
const plain = (text: string) =>
  text
    .toLowerCase()
    .replace(/(?<=\d)[,'’\u00a0\u202f](?=\d{3}(?!\d))/g, '')
    .replace(/\s+/g, ' ');

function around(line: string, term: string): string {
  if (line.length <= MAX_LINE_CHARS) return line;
  const at = Math.max(0, line.indexOf(term));
  const before = Math.max(0, Math.floor((MAX_LINE_CHARS - term.length) / 2));
  const start = Math.max(0, Math.min(at - before, line.length - MAX_LINE_CHARS));
  const end = Math.max(start + MAX_LINE_CHARS, Math.min(line.length, at + term.length));
  const cut = partOf(line, start, end).trim();
  return `${start > 0 ? '…' : ''}${cut}${end < line.length ? '…' : ''}`;
}
