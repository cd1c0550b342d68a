// Whether a summary holds what must not get lost: addresses, paths, ids, numbers, names and promises
// that the person or the agent wrote down. What is missing is quoted with the words around it.

import type { TranscriptEntry } from '../../kernel/message/transcript.ts';
import { partOf } from '../../lib/text/cut.ts';

const HEADING = 'Also said, word for word:';
/** Of a quoted line. */
const MAX_LINE_CHARS = 120;
const MAX_TERM_CHARS = 200;
/** More terms in one line make a table of it, which the summary cannot repeat. */
const MAX_TERMS_PER_LINE = 12;
/** Of the words of a promise, those that must stand in the summary. */
const KEPT_WORDS_SHARE = 0.6;

/** A word with a capital, whole. */
const NAME = "(?:\\p{Lu}\\p{L}+(?:['’-]\\p{L}+)*(?![\\p{L}\\p{N}_-]))";

const TERMS: readonly RegExp[] = [
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
];

/** Words by which somebody binds themself, in the languages that are written most. */
const PROMISES =
  /(?<!\p{L})(?:I['’]ll|I will|I promise|remind|don['’]t forget|deadline|due by|ich werde|erinner\w*|versproch\w*|je vais|rappel\w*|promets|recu[eé]rd\w*|promet\w*|ricord\w*|lembr\w*|напомн\w*|обеща\w*)/iu;

/** Of the room for quotes, what comes before those of an earlier summary. */
const NEW_SHARE = 0.5;

/** Longer lines are looked at in pieces, at blanks where there are some. */
const PIECES = /.{1,400}(?:\s|$)|.{1,400}/gsu;

const QUOTES = /^["“„«`]|["”“»`]$/g;

type Line = { readonly text: string; readonly speaker: string };

/** Lines to add to the summary, together at most `maxChars` with their line ends; none = it is whole. */
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

/** Of the lines with something that must not get lost, how many the summary does not hold; 0 to 1. */
export function lostShare(summary: string, covered: readonly TranscriptEntry[]): number {
  const lines = [...newLines(covered), ...earlierLines(covered)];
  const all = quotes(lines, [], Number.POSITIVE_INFINITY).length;
  return all === 0 ? 0 : quotes(lines, [summary], Number.POSITIVE_INFINITY).length / all;
}

const charsOf = (lines: readonly string[]) => lines.reduce((sum, line) => sum + line.length + 1, 0);

/** The first ones that fit, of those with something that is not known yet. */
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

/** What was summed up before, as it stands there; newest first. */
const earlierLines = (covered: readonly TranscriptEntry[]): readonly Line[] =>
  covered
    .flatMap((entry) => (entry.role === 'summary' ? unquoted(entry.text).split('\n') : []))
    .map((text) => ({ text: text.slice(0, 2 * MAX_LINE_CHARS).trim(), speaker: '' }))
    .filter(({ text }) => text !== '')
    .toReversed();

/** The person's own words, then the agent's, then what it did; newest first. */
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
  const terms = TERMS.flatMap((pattern) => line.match(pattern) ?? [])
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

/** As a whole: "111" does not stand in "1112". */
function holds(text: string, term: string): boolean {
  for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + 1)) {
    const around = `${text[at - 1] ?? ' '}${text[at + term.length] ?? ' '}`;
    if (!/[\p{L}\p{N}]/u.test(around)) return true;
  }
  return false;
}

/** Case, white space and the marks between groups of three digits do not count. */
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
