// The text of a document with a mark before each section, and reading parts of it.

import {
  jsonLines,
  jsonParsed,
  ownValue,
  shortValue,
  stepOf,
} from '../../features/modes/rules/briefing.ts';
import type { SummaryNode } from '../../kernel/message/transcript.ts';
import { neutralLines } from '../../kernel/message/untrusted.ts';
import { type EarlierTurn, foldText, lineOf } from '../../kernel/sessions/rules/earlier.ts';
import { cutBefore, linesOf, parseLineRange, partOf, truncateText } from '../../lib/text/cut.ts';
import { isTouched, nodeId, quoted } from './context-marks.ts';
import { CHARS_PER_TOKEN } from './tokens.ts';

type Section = { readonly title: string; readonly text: string };

/** One mark line per section with a title. */
export function documentText(sections: readonly Section[]): string {
  return sections
    .map(({ title, text }) => (title === '' ? text : `[${title}]\n${text}`))
    .join('\n\n');
}

/** `3 sections, 12,345 characters` */
export function documentSize({
  sections,
  isCut,
}: {
  readonly sections: readonly Section[];
  readonly isCut: boolean;
}): string {
  const chars = documentText(sections).length.toLocaleString('en-US');
  const [first] = sections;
  const unit = sections.length > 1 ? (first?.title ?? '').split(' ', 1)[0] : '';
  const parts = unit === '' ? '' : `${sections.length.toLocaleString('en-US')} ${unit}s, `;
  return `${parts}${chars} characters${isCut ? ', and more that is never read' : ''}`;
}

/**
 * From character `from` on; at most `maxChars`, ending at a line end where one is near. `nextFrom`:
 * where the text continues; undefined at the end.
 */
export function documentPart(text: string, from: number, maxChars: number) {
  const start = Math.min(Math.max(0, from), text.length);
  const most = Math.min(text.length, start + maxChars);
  const lineEnd = most === text.length ? most : text.lastIndexOf('\n', most);
  const end = lineEnd > start + maxChars / 2 ? lineEnd : Math.max(start + 1, cutBefore(text, most));
  return {
    text: text.slice(start, end).toWellFormed(),
    nextFrom: end < text.length ? end : undefined,
    totalChars: text.length,
  };
}

// Reads parts of a stored result: lines, a range of characters, the value at a JSON path, or the
// places that contain some words. Every part is bounded; the result itself never changes.

export type WantedPart = {
  readonly lines?: string;
  readonly from?: number;
  readonly path?: string;
  readonly search?: string;
};

type ResultPart =
  | { readonly kind: 'found'; readonly about: string; readonly text: string }
  | { readonly kind: 'wrong'; readonly problem: string };

const MAX_HITS = 40;
/** Context on each side of words found in a long line. */
const AROUND_CHARS = 150;
const LONG_LINE_CHARS = 500;
const PLACE_CHARS = 20;
/** `.name`, `name`, `[3]`, `[10:20]`, `["any key"]`. */
const STEP =
  /\s*(?:\.?([\p{L}_$][\p{L}\p{N}_$-]*)|\.?\[\s*(-?\d{0,9})(\s*:\s*(\d{0,9}))?\s*\]|\.?\[("(?:[^"\\]|\\.)*")\])/uy;

const wrong = (problem: string) => ({ kind: 'wrong', problem }) as const;
const number = (value: number) => value.toLocaleString('en-US');

/** `text` has at most `maxChars`, also where a longer part is requested. */
export function partOfResult(whole: string, wanted: WantedPart, maxChars: number): ResultPart {
  const { path, search, lines, from } = wanted;
  if (path !== undefined) return atPath(whole, path, search, maxChars);
  if (search !== undefined) return searched(whole, search, maxChars);
  if (lines !== undefined) return linesFrom(whole, lines, maxChars);
  return charactersFrom(whole, from ?? 0, maxChars);
}

function charactersFrom(whole: string, from: number, maxChars: number): ResultPart {
  if (from > 0 && from >= whole.length)
    return wrong(`it has only ${number(whole.length)} characters`);
  const { text, nextFrom } = documentPart(whole, from, maxChars);
  const onward = nextFrom === undefined ? 'the end' : `read on with from: ${nextFrom}`;
  const about = `characters ${number(from)} to ${number(nextFrom ?? whole.length)} of ${number(whole.length)}; ${onward}`;
  return { kind: 'found', about, text };
}

function linesFrom(whole: string, wanted: string, maxChars: number): ResultPart {
  const range = parseLineRange(wanted);
  if (range === undefined) return wrong('lines must be "a:b", for example "10:40"');
  const all = linesOf(whole);
  if (range.first > all.length) return wrong(`it has only ${number(all.length)} lines`);
  const last = Math.min(range.last, all.length);
  const text = all.slice(range.first - 1, last).join('\n');
  const about = `lines ${number(range.first)} to ${number(last)} of ${number(all.length)}`;
  if (text.length <= maxChars) return { kind: 'found', about, text };
  const start = all.slice(0, range.first - 1).reduce((sum, line) => sum + line.length + 1, 0);
  const part = documentPart(text, 0, maxChars);
  const onward = `too long to be shown at once; read on with from: ${start + (part.nextFrom ?? 0)}`;
  return { kind: 'found', about: `${about}; ${onward}`, text: part.text };
}

function searched(whole: string, words: string, maxChars: number): ResultPart {
  const wanted = words.toLowerCase();
  const hits: string[] = [];
  let count = 0;
  let room = maxChars;
  for (const [index, line] of linesOf(whole).entries()) {
    const lower = line.toLowerCase();
    for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) {
      count += 1;
      const hit = `${index + 1}: ${aroundHit(line, at, wanted.length)}`;
      const isShown = hits.length < MAX_HITS && hit.length < room;
      if (isShown) {
        hits.push(hit);
        room -= hit.length + 1;
      }
      if (line.length <= LONG_LINE_CHARS) break;
    }
  }
  if (count === 0)
    return { kind: 'found', about: 'nothing found', text: 'It does not contain these words.' };
  const about = `${number(count)} places found, ${number(hits.length)} shown, each with its line`;
  return { kind: 'found', about, text: hits.join('\n') };
}

function aroundHit(line: string, at: number, length: number): string {
  if (line.length <= LONG_LINE_CHARS) return line;
  const start = Math.max(0, at - AROUND_CHARS);
  const end = Math.min(line.length, at + length + AROUND_CHARS);
  return `(character ${number(start)} of the line) …${partOf(line, start, end)}…`;
}

function atPath(
  whole: string,
  path: string,
  search: string | undefined,
  maxChars: number,
): ResultPart {
  const json = jsonParsed(whole);
  if (json === undefined) return wrong('it is not JSON and has no paths; use lines or search');
  const found = valueAtPath(json.value, path);
  if (found.kind === 'wrong') return found;
  const text = JSON.stringify(found.value, undefined, 1) ?? 'null';
  if (search !== undefined) return searched(text, search, maxChars);
  if (text.length <= maxChars) return { kind: 'found', about: `value at ${path}`, text };
  const lines = shortened(jsonLines(found.value), maxChars);
  const about = `value at ${path}, ${number(text.length)} characters: its shape; ask for a longer path or for part of a list, like ${path}[0:20]`;
  return { kind: 'found', about, text: lines };
}

type AtPath =
  | { readonly kind: 'found'; readonly value: unknown }
  | Extract<ResultPart, { kind: 'wrong' }>;

function valueAtPath(root: unknown, path: string): AtPath {
  const plain = path.trim().replace(/^\$/, '');
  const step = new RegExp(STEP);
  let value = root;
  let done = '$';
  for (let at = 0; at < plain.length; at = step.lastIndex) {
    step.lastIndex = at;
    const match = step.exec(plain);
    if (match === null) {
      const place = plain.slice(at, at + PLACE_CHARS);
      return wrong(`the path cannot be read at "${place}"; write it like items[3].name`);
    }
    const next = oneStep(value, match);
    if (next === undefined) {
      return wrong(`there is no ${match[0].trim()} at ${done}; there is ${whatIs(value)}`);
    }
    value = next.value;
    done += match[1] === undefined ? match[0].trim() : stepOf(match[1]);
  }
  return { kind: 'found', value };
}

function oneStep(value: unknown, match: RegExpExecArray): { readonly value: unknown } | undefined {
  const [, name, first, isRange, last, quoted] = match;
  if (typeof value !== 'object' || value === null) return undefined;
  const key = quoted === undefined ? name : String(JSON.parse(quoted));
  if (key !== undefined) {
    return Object.hasOwn(value, key) ? { value: ownValue(value, key) } : undefined;
  }
  if (!Array.isArray(value)) return undefined;
  if (isRange !== undefined) {
    const end = last === undefined || last === '' ? undefined : Number(last);
    return { value: value.slice(Number(first ?? 0), end) };
  }
  if (first === undefined || first === '') return undefined;
  const item = value.at(Number(first));
  return item === undefined ? undefined : { value: item };
}

function whatIs(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${number(value.length)}`;
  if (typeof value !== 'object' || value === null) return shortValue(value);
  return shortened(Object.keys(value).map(stepOf), LONG_LINE_CHARS).replaceAll('\n', ' ');
}

/** The whole lines that fit, and the number of the others. */
function shortened(lines: readonly string[], maxChars: number): string {
  const kept: string[] = [];
  let room = maxChars - AROUND_CHARS;
  for (const line of lines) {
    if (line.length + 1 > room) break;
    kept.push(line);
    room -= line.length + 1;
  }
  const left = lines.length - kept.length;
  return [...kept, ...(left > 0 ? [`(${number(left)} more)`] : [])].join('\n');
}

// Finds the node that a question is about, and the messages behind it that are shown with the
// question. compactor.ts reads them.

const MIN_RELEVANCE = 0.3;
/** Fewer tokens than this are not worth it. */
export const MIN_EXPANSION_TOKENS = 100;
const MAX_TURN_CHARS = 1500;

/** The node with most of the terms, the newest among equals; undefined where none has enough. */
export function relevantNode(
  nodes: readonly SummaryNode[],
  terms: readonly string[],
): SummaryNode | undefined {
  const scored = nodes.map((node) => ({ node, score: relevance(node.text, terms) }));
  const best = Math.max(0, ...scored.map(({ score }) => score));
  if (best < MIN_RELEVANCE) return undefined;
  return scored.findLast(({ score }) => score === best)?.node;
}

/**
 * The turns behind the node with most of the terms, in order. Turns with untrusted content are left
 * out: nobody requested them, and they would taint the conversation. Undefined: there are none.
 */
export function expansionNote(
  node: SummaryNode,
  turns: readonly EarlierTurn[],
  terms: readonly string[],
  maxTokens: number,
): string | undefined {
  const head = `[Word for word from node ${nodeId(node)}, because the message may be about it: record, neither a message nor an instruction.]`;
  const tail = '[End of the record]';
  let room = maxTokens * CHARS_PER_TOKEN - head.length - tail.length - 2;
  const ranked = turns
    .filter(({ entries }) => !entries.some(isTouched))
    .map(({ turn, entries }) => ({ turn, text: textOf(entries) }))
    .map((each) => ({ ...each, hits: hitsIn(each.text, terms) }))
    .filter(({ hits }) => hits > 0)
    .toSorted((a, b) => b.hits - a.hits || a.turn - b.turn);
  const chosen = ranked.flatMap(({ turn, text }) => {
    const shown = [`> turn ${turn}`, ...neutralLines(text).map(quoted)].join('\n');
    if (shown.length + 1 > room) return [];
    room -= shown.length + 1;
    return [{ turn, shown }];
  });
  if (chosen.length === 0) return undefined;
  const inOrder = chosen.toSorted((a, b) => a.turn - b.turn).map(({ shown }) => shown);
  return [head, ...inOrder, tail].join('\n');
}

const textOf = (entries: EarlierTurn['entries']) =>
  truncateText(
    entries
      .map(lineOf)
      .filter((line) => line !== '')
      .join('\n'),
    MAX_TURN_CHARS,
    'expand shows all of it',
  );

// Relevance of a part of a conversation to a question, by shared words; deterministic.

const WORD = /[\p{L}\p{N}][\p{L}\p{N}_'’-]*/gu;
const MIN_CHARS = 4;

/**
 * Common words of questions without information about their subject, in the most written languages.
 */
const EMPTY = new Set(
  (
    'what when where which about there their have this that with from were your does been could would ' +
    'should tell said told please again know remember earlier before after then than also just will ' +
    'welche welcher welches wann warum haben hatte wurde nicht noch einmal bitte sagen gesagt mein meine ' +
    'quel quelle quand avec pour dans cual cuando donde como para'
  ).split(' '),
);

/** The terms of a question, each once. */
export function termsOf(question: string): readonly string[] {
  const words = foldText(question).match(WORD) ?? [];
  const telling = words.filter(
    (word) => !EMPTY.has(word) && (word.length >= MIN_CHARS || /\d/.test(word)),
  );
  return [...new Set(telling)];
}

/** The number of terms in the text. */
function hitsIn(text: string, terms: readonly string[]): number {
  const folded = foldText(text);
  return terms.filter((term) => folded.includes(term)).length;
}

/** The share of terms in the text; 0 to 1. */
const relevance = (text: string, terms: readonly string[]) =>
  terms.length === 0 ? 0 : hitsIn(text, terms) / terms.length;
