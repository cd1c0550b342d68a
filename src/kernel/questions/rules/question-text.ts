// The text of a question before a decision: a sentence, who asks, and below it the exact text that
// the decision is about. Nothing in it is hidden or deceptive; what does not fit on a screen comes
// as a file. Cases X04 and X05.

import { msgid, ngettext, t } from '../../../lib/texts.ts';
import { verbatim } from '../../message/untrusted.ts';

/** Longest text shown within the question, characters after escaping; a longer one is a file. */
export const MAX_INLINE_CHARS = 1500;
/** The part of a longer text that the question itself shows. */
const BEGINNING_CHARS = 500;
const HOUR_MS = 3_600_000;

/** The subject of a question, if its sentence does not show everything. */
export type Matter = {
  /** Who requests it, as our own or escaped text. */
  readonly asker: string;
  /** Untrusted content was in view when it was requested. */
  readonly isTainted: boolean;
  /**
   * The exact subject of the decision, escaped by `shownText` or `asciiText`. Absent: the sentence
   * says it all.
   */
  readonly text?: string;
  /** Its name as a file. */
  readonly file?: string;
  /** Further information for the decision. */
  readonly hint?: string;
};

/** A request as text: a sentence, and the exact text that does not fit in it. */
export type RequestWords = {
  /** Markdown, with a question mark; untrusted parts escaped by `inlineCode` or `verbatim`. */
  readonly sentence: string;
  readonly text?: string;
  /** The text's name as a file. */
  readonly file?: string;
};

type QuestionText = {
  /** Stays in the chat after the decision. */
  readonly markdown: string;
  /** Removed with the decision. */
  readonly tail: string;
  /** The whole of a text that does not fit. */
  readonly file?: { readonly name: string; readonly text: string };
};

/** `hasFiles`: the chat supports files; otherwise the question contains all of the text. */
export function questionText(
  sentence: string,
  { asker, isTainted, text = '', file = 'request.txt', hint = '' }: Matter,
  expiresInMs: number,
  hasFiles: boolean,
): QuestionText {
  const isLong = hasFiles && text.length > MAX_INLINE_CHARS;
  const shown = isLong ? `${text.slice(0, BEGINNING_CHARS).trimEnd()}\n[...]` : text;
  const lines = [
    t`${sentence} Asked by ${asker}.`,
    ...(isTainted
      ? [t`Careful: untrusted content is in view here, and may be why this is asked.`]
      : []),
    ...(text === '' ? [] : ['', fenced(shown)]),
    ...(isLong ? [t`All of it, ${text.length} characters, is in the file ${file}.`] : []),
  ];
  const tail = [t`Expires in ${durationWords(expiresInMs)}.`, hint].filter((line) => line !== '');
  return {
    markdown: lines.join('\n'),
    tail: tail.join('\n'),
    ...(isLong ? { file: { name: file, text } } : {}),
  };
}

/** `1 hour`, `12 hours`. */
export function durationWords(ms: number): string {
  const hours = Math.max(1, Math.round(ms / HOUR_MS));
  return ngettext(msgid`${hours} hour`, `${hours} hours`, hours);
}

/** The text with all invisible or deceptive characters escaped. */
export function shownText(text: string): string {
  return blanksEscaped(mixedScriptsEscaped(text).replace(NOT_SEEN, escaped));
}

/** For text that machines read: escapes everything but ASCII. */
export const asciiText = (text: string): string => blanksEscaped(text.replace(NOT_ASCII, escaped));

const blanksEscaped = (text: string) =>
  text.replace(LONG_BLANK, (blank) => ` ${escaped(blank.slice(1))}`);

/** Longest text within a sentence, characters. */
const MAX_IN_SENTENCE_CHARS = 200;

/** The text as a code span, if that shows it unchanged and it is short. */
export function inlineCode(text: string, escaping = shownText): string | undefined {
  const code = verbatim(escaping(text));
  return text.length <= MAX_IN_SENTENCE_CHARS && code === `\`${text}\`` ? code : undefined;
}

/** Arguments, a line each: `key: value`; a value of several lines is below its key, indented. */
export function argumentLines(json: string): string {
  const lines = Object.entries(JSON.parse(json) as object).map(
    ([key, value]: [string, unknown]) => {
      if (typeof value !== 'string') return `${key}: ${JSON.stringify(value)}`;
      if (value.includes('\n')) return `${key}:\n  ${value.replaceAll('\n', '\n  ')}`;
      return `${key}: ${LIKE_JSON.test(value) ? JSON.stringify(value) : value}`;
    },
  );
  return lines.join('\n');
}

/** Could be mistaken for a value other than text. */
const LIKE_JSON = /^(?:[-\d[{"].*|true|false|null|\s.*|)$/;

/** As a code block that nothing in the text can end. */
export function fenced(text: string): string {
  const fence = '`'.repeat(Math.max(3, longestRun(text) + 1));
  return [fence, text, fence].join('\n');
}

const NOT_ASCII = /[^\n\x20-\x7e]/g;
const NOT_SEEN =
  /(?!\n)[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}|\p{Default_Ignorable_Code_Point}|\u2800|[\u{FE00}-\u{FE0F}]/gu;
/** Excludes the program's own indentation at the start of a line. */
const LONG_BLANK = /(?<=\S) {3,}/g;
const WORD = /[\p{L}\p{M}\p{N}_@.-]+/gu;
const LATIN = /\p{Script=Latin}/u;
const OTHER_LETTER = /(?!\p{Script=Latin}|\p{Script=Common}|\p{Script=Inherited})\p{L}/gu;

/** In a word of Latin letters, a letter of another script is a look-alike. */
function mixedScriptsEscaped(text: string): string {
  return text.replace(WORD, (word) =>
    LATIN.test(word) ? word.replace(OTHER_LETTER, escaped) : word,
  );
}

function escaped(text: string): string {
  return Array.from({ length: text.length }, (_, at) => {
    return `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`;
  }).join('');
}

function longestRun(text: string): number {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
}
