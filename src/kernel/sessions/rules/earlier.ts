// Earlier turns of a conversation as a model reads them again: whole turns with their numbers, in
// pieces of a bounded length. sessions/ finds them in the files.

import { isTouched } from '../../../agent/rules/context-marks.ts';
import { headOf, oneLine } from '../../../lib/text/cut.ts';
import {
  firstSeqOf,
  type ResultId,
  resultId,
  type SessionKey,
  type TurnId,
} from '../../message/ids.ts';
import type { TranscriptEntry } from '../../message/transcript.ts';
import { isoTime } from './file.ts';

export type EarlierQuestion = {
  /** Only turns with a smaller number, the newest of them. */
  readonly before?: number;
  /** This turn and later ones, the oldest of them; `before` still bounds them. */
  readonly from?: number;
  /** The conversation as it was before this reset (epoch milliseconds), not the one of now. */
  readonly beforeReset?: number;
  /** Only turns that contain all of these words. */
  readonly words?: string;
  /** Also turns that were undone or answered again. */
  readonly withUndone?: true;
  readonly maxTurns: number;
  /** Most files of the conversation to search, the newest first; default: 100. */
  readonly maxFiles?: number;
};

export type EarlierTurn = {
  /** Its place in the conversation: numbers grow, with gaps. */
  readonly turn: number;
  readonly entries: readonly TranscriptEntry[];
  /** It was undone or answered again: the model sees nothing of it. */
  readonly isUndone?: true;
};

export type EarlierTurns = {
  /** Oldest first. */
  readonly turns: readonly EarlierTurn[];
  /** There may be older ones. */
  readonly hasOlder: boolean;
  /** The reset with which this part began; given with its oldest turns. */
  readonly beganAt?: number;
};

const WORD = /[\p{L}\p{N}]+/gu;
const FOREIGN = '[Some of this is untrusted content.]';

export const wordsIn = (text: string): readonly string[] => text.toLowerCase().match(WORD) ?? [];

export function holdsWords(entries: readonly TranscriptEntry[], words: readonly string[]): boolean {
  const text = entries.map(lineOf).join('\n').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Whether a text of `earlierText` contains untrusted content. */
export const tellsUntrusted = (text: string) => text.startsWith(FOREIGN);

/** At most `maxChars` from `offset` on, including a heading line of the program. */
export function earlierText(
  { turns, hasOlder }: EarlierTurns,
  offset: number,
  maxChars: number,
): string {
  const whole = turns.map(turnText).join('\n\n');
  const first = turns.at(0)?.turn ?? 0;
  const last = turns.at(-1)?.turn ?? 0;
  const which = first === last ? `turn ${first}` : `turns ${first} to ${last}`;
  const mark = turns.some(({ entries }) => entries.some(isTouched));
  const around = `${hasOlder ? `; older ones: before: ${first}` : ''}; newer ones: from: ${last + 1}`;
  const head = (range: string) =>
    `${mark ? `${FOREIGN}\n` : ''}[${which} of this conversation; ${range}${around}]\n`;
  const start = Math.min(offset, whole.length);
  const room = Math.max(
    1,
    maxChars -
      head('characters 000,000,000 to 000,000,000 of 000,000,000, read on with offset: 000000000')
        .length,
  );
  const end = Math.min(whole.length, start + room);
  const [from, to, of] = [start, end, whole.length].map((at) => at.toLocaleString('en-US'));
  const onward = end < whole.length ? `, read on with offset: ${end}` : '';
  return `${head(`characters ${from} to ${to} of ${of}${onward}`)}${whole.slice(start, end)}`;
}

function turnText({ turn, entries }: EarlierTurn): string {
  const at = isoTime(entries[0]?.at ?? 0)
    .slice(0, 16)
    .replace('T', ' ');
  const lines = entries.map(lineOf).filter((line) => line !== '');
  return [`--- turn ${turn}, ${at} UTC`, ...lines].join('\n');
}

/** One entry with its author; empty for bookkeeping. */
export function lineOf(entry: TranscriptEntry): string {
  switch (entry.role) {
    case 'user':
      return `person: ${entry.text}`;
    case 'assistant': {
      const calls = entry.toolCalls.map(
        ({ name, arguments: given }) => `you called ${name} ${given}`,
      );
      return [...(entry.text.trim() === '' ? [] : [`you: ${entry.text}`]), ...calls].join('\n');
    }
    case 'tool':
      return `${entry.name} (${entry.status}): ${entry.text}`;
    case 'turn_end':
      return entry.outcome === 'answered' ? '' : `(the turn ${entry.outcome})`;
    case 'summary':
    case 'reset':
    case 'undo':
    case 'restore':
      return '';
  }
}

// Tool results that can be read again: their names, and the difference between what the model saw
// of one and what is stored.

const SHAPE = /^r\d{1,16}\.\d{1,9}$/;

/**
 * `r12.3`: third call of the turn that began with message 12, the same on every retry. `ordinal`
 * counts the calls of the turn from 0. Undefined for a turn without a number.
 */
export function resultIdOf(turn: TurnId, ordinal: number): ResultId | undefined {
  const first = firstSeqOf(turn);
  return first === undefined ? undefined : resultId(`r${first}.${ordinal + 1}`);
}

/** As a model writes it; undefined if it names no result. */
export function parseResultId(text: string): ResultId | undefined {
  const plain = text.trim().toLowerCase();
  return SHAPE.test(plain) ? resultId(plain) : undefined;
}

/** Number of its turn. */
export const turnOfResult = (id: ResultId) => Number(/\d+/.exec(id)?.[0] ?? 0);

/** What is kept in memory of an entry: the whole of a long result stays on disk. */
export function withoutWhole(entry: TranscriptEntry): TranscriptEntry {
  if (entry.role !== 'tool' || entry.whole === undefined) return entry;
  const { whole: _, ...light } = entry;
  return light;
}

// The extract of a conversation for memory search: front matter, then a bullet per message.

const MAX_MESSAGE_CHARS = 500;

/** `day` as `YYYY-MM-DD`. */
export function extractHeader(key: SessionKey, day: string): string {
  return `---\nsession_key: ${JSON.stringify(key)}\nday: ${day}\nstatus: indexed\n---\n\n`;
}

/** Undefined for entries without text of a person or the agent. */
export function extractLine(entry: TranscriptEntry): string | undefined {
  if (entry.role !== 'user' && entry.role !== 'assistant') return undefined;
  const text = oneLine(entry.text);
  if (text === '') return undefined;
  const cut = headOf(text, MAX_MESSAGE_CHARS);
  return `- ${entry.role}: ${cut}${cut.length < text.length ? '…' : ''}`;
}

// Words for the full-text index: ignores case, accents and compatibility forms; scripts without
// spaces are split into pairs. A person's words become terms, never syntax.

/** Scripts without spaces between words; a split by it keeps them. */
const UNSPACED = /([\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}ー]+)/u;
const MAX_WORDS = 24;
const MAX_WORD_CHARS = 40;
const MIN_PREFIX_CHARS = 3;
const MIN_STEM_CHARS = 5;
/** Frequent endings of German, English and the Romance languages. */
const ENDING = /(?:ungen|ung|en|er|es|em|ing|ed|e|n|s)$/;

export function foldText(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase().replaceAll('ß', 'ss');
}

/** The text as it is indexed. */
export function indexedWords(text: string): string {
  return (foldText(text).match(WORD) ?? []).flatMap(piecesOf).join(' ');
}

/** What a text contains that is found: a word, or one that begins so. Only letters and digits. */
export type IndexTerm = { readonly word: string; readonly isPrefix: boolean };

/** A text with any of them is found; empty if there are no words. */
export function indexTerms(words: string): readonly IndexTerm[] {
  const pieces = (foldText(words).match(WORD) ?? []).flatMap(piecesOf).slice(0, MAX_WORDS);
  const terms = pieces.flatMap(termsOf);
  return [...new Map(terms.map((term) => [`${term.word} ${term.isPrefix}`, term])).values()];
}

/** The best of these matches are ranked again by their age. */
export const RANKED_MATCHES = 200;
/** At this age a part gets half the bonus of a new one. */
const HALF_LIFE_MS = 30 * 86_400_000;
const NEWEST_BONUS = 0.5;

/** `score`: of its words, more is better. Times in epoch milliseconds. */
export function rankedByAge<Part extends { readonly at: number }>(
  found: readonly { readonly part: Part; readonly score: number }[],
  { limit, now }: { readonly limit: number; readonly now: number },
): readonly Part[] {
  const scoreOf = ({ part, score }: (typeof found)[number]) =>
    score * (1 + NEWEST_BONUS * freshness(now - part.at));
  return found
    .map((each) => ({ part: each.part, score: scoreOf(each) }))
    .sort((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ part }) => part);
}

/** 1 for a new part, approaching 0 with age. */
const freshness = (ageMs: number) => 2 ** (-Math.max(0, ageMs) / HALF_LIFE_MS);

/** Position of the first of the words in the text, for a snippet; 0 if there is none. */
export function placeOfWords(text: string, words: string): number {
  const lowered = text.toLowerCase();
  const terms = [...(words.toLowerCase().match(WORD) ?? [])].sort((a, b) => b.length - a.length);
  const places = terms
    .flatMap((term) => [term, term.replace(ENDING, '')])
    .map((term) => (term.length < 2 ? -1 : lowered.indexOf(term)))
    .filter((at) => at >= 0);
  return places[0] ?? 0;
}

function piecesOf(word: string): readonly string[] {
  // Most have none, and finding that out is faster than splitting.
  if (!UNSPACED.test(word)) return cutWord(word);
  const pieces = word.split(UNSPACED);
  return pieces.flatMap((piece, at) => (at % 2 === 0 ? cutWord(piece) : pairsOf([...piece])));
}

const cutWord = (word: string) => (word === '' ? [] : [word.slice(0, MAX_WORD_CHARS)]);

function pairsOf(letters: readonly string[]): readonly string[] {
  if (letters.length < 2) return letters;
  return letters.slice(1).map((letter, index) => `${letters[index]}${letter}`);
}

function termsOf(word: string): readonly IndexTerm[] {
  const whole = { word, isPrefix: false };
  const start = { word, isPrefix: true };
  if (UNSPACED.test(word)) return [[...word].length < 2 ? start : whole];
  if (word.length < MIN_PREFIX_CHARS) return [whole];
  const stem = word.replace(ENDING, '');
  return stem !== word && stem.length >= MIN_STEM_CHARS
    ? [start, { word: stem, isPrefix: true }]
    : [start];
}

// A transcript as Markdown for people: who said what when. Tool results are in fences that their
// content cannot close.

/** Ends with a newline; empty for bookkeeping entries. */
export function markdownOfEntry(entry: TranscriptEntry): string {
  switch (entry.role) {
    case 'user':
      return section('User', entry.at, entry.text);
    case 'assistant':
      return section('Assistant', entry.at, [entry.text, ...entry.toolCalls.map(callLine)]);
    case 'tool':
      return section(
        `Tool ${entry.name} (${entry.status})`,
        entry.at,
        fenced(entry.whole ?? entry.text),
      );
    case 'summary':
      return section('Summary of the earlier conversation', entry.at, [
        entry.text,
        ...(entry.untrusted === undefined ? [] : ['_Untrusted part:_', entry.untrusted]),
      ]);
    case 'reset':
      return section('New conversation', entry.at, []);
    case 'undo':
      return '\n_The last exchange was taken back._\n';
    case 'restore':
      return '\n_Restored what /new or /undo removed._\n';
    case 'turn_end':
      return entry.outcome === 'answered' ? '' : `\n_The turn was ${entry.outcome}._\n`;
  }
}

function section(title: string, atMs: number, body: string | readonly string[]): string {
  const parts = (typeof body === 'string' ? [body] : body).filter((part) => part !== '');
  const time = minuteOf(atMs);
  return `\n${[`## ${title} · ${time}`, ...parts].join('\n\n')}\n`;
}

const callLine = (call: { readonly name: string; readonly arguments: string }) =>
  `Calls \`${call.name}\`:\n\n${fenced(call.arguments)}`;

function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

/** `2026-01-15 12:00 UTC` */
function minuteOf(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
