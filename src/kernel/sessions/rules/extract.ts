// The extract of a conversation that memory search reads: front matter, then a bullet per message.

import { headOf } from '../../../lib/text/cut.ts';
import type { SessionKey } from '../../message/ids.ts';
import type { TranscriptEntry } from '../../message/transcript.ts';

const MAX_MESSAGE_CHARS = 500;

/** `day` as `YYYY-MM-DD`. */
export function extractHeader(key: SessionKey, day: string): string {
  return `---\nsession_key: ${JSON.stringify(key)}\nday: ${day}\nstatus: indexed\n---\n\n`;
}

/** Undefined for entries without words of a person or the agent. */
export function extractLine(entry: TranscriptEntry): string | undefined {
  if (entry.role !== 'user' && entry.role !== 'assistant') return undefined;
  const text = entry.text.replace(/\s+/g, ' ').trim();
  if (text === '') return undefined;
  const cut = headOf(text, MAX_MESSAGE_CHARS);
  return `- ${entry.role}: ${cut}${cut.length < text.length ? '…' : ''}`;
}

// Words as the full-text index knows them: case, accents and compatibility forms do not count, scripts
// without spaces are cut into pairs. A person's words become a query of quoted words, never syntax.

const WORD = /[\p{L}\p{N}]+/gu;
/** Scripts whose words no spaces part. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}ー]+/gu;
const MAX_WORDS = 24;
const MAX_WORD_CHARS = 40;
const MIN_PREFIX_CHARS = 3;
const MIN_STEM_CHARS = 5;
/** Frequent endings of German, English and the Romance languages. */
const ENDING = /(?:ungen|ung|en|er|es|em|ing|ed|e|n|s)$/;

export function foldText(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase().replaceAll('ß', 'ss');
}

/** The text as it is given to the index. */
export function indexedWords(text: string): string {
  return (foldText(text).match(WORD) ?? []).flatMap(piecesOf).join(' ');
}

/**
 * An FTS5 query (https://sqlite.org/fts5.html section 3) that finds texts with any of these words;
 * undefined where there are none.
 */
export function indexQuery(words: string): string | undefined {
  const pieces = (foldText(words).match(WORD) ?? []).flatMap(piecesOf).slice(0, MAX_WORDS);
  const terms = new Set(pieces.flatMap(termsOf));
  return terms.size === 0 ? undefined : [...terms].join(' OR ');
}

/** Where the first of the words stands in the text, for showing what is around it; 0 where none does. */
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
  const pieces: string[] = [];
  let rest = 0;
  for (const match of word.matchAll(UNSPACED)) {
    pieces.push(...cutWord(word.slice(rest, match.index)));
    pieces.push(...pairsOf([...match[0]]));
    rest = match.index + match[0].length;
  }
  return [...pieces, ...cutWord(word.slice(rest))];
}

const cutWord = (word: string) => (word === '' ? [] : [word.slice(0, MAX_WORD_CHARS)]);

function pairsOf(letters: readonly string[]): readonly string[] {
  if (letters.length < 2) return letters;
  return letters.slice(1).map((letter, index) => `${letters[index]}${letter}`);
}

/** Nothing but letters and digits is left, so the quotes hold. */
function termsOf(piece: string): readonly string[] {
  const isUnspaced = new RegExp(UNSPACED.source, 'u').test(piece);
  if (isUnspaced) return [[...piece].length < 2 ? `"${piece}"*` : `"${piece}"`];
  if (piece.length < MIN_PREFIX_CHARS) return [`"${piece}"`];
  const stem = piece.replace(ENDING, '');
  return stem !== piece && stem.length >= MIN_STEM_CHARS
    ? [`"${piece}"*`, `"${stem}"*`]
    : [`"${piece}"*`];
}

// A transcript as Markdown for people: who said what when. Results of tools stand in fences that
// their content cannot close.

/** Ends in a newline; empty for entries that are bookkeeping only. */
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
      return section('Summary of what came before', entry.at, entry.text);
    case 'reset':
      return section('New conversation', entry.at, []);
    case 'undo':
      return '\n_The last exchange was taken back._\n';
    case 'restore':
      return '\n_What was taken out of sight was brought back._\n';
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
