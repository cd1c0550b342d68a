// Prose, code and logs that are too long to be shown: an outline with line numbers where the text has
// one, its first and last lines. What nobody reads (encoded data, endless lines) is cut in them.

import { headOf } from './cut.ts';
import { keepFirstLines, keepLastLines } from './truncate.ts';

const HEADING = /^(?:#{1,6} \S|(?:={3,}|-{3,}) \S.* (?:={3,}|-{3,})$)/;
/** Definitions at the beginning of a line in the usual languages. */
const DEFINITION =
  /^\s{0,4}(?:(?:export|public|private|protected|static|a(?:bstract|sync)|default|pub(?:\([a-z]+\))?|final|override) )*(?:function\*?|class|interface|type|enum|def|fn|func|struct|trait|impl|module|namespace|object|record|sub|CREATE (?:TABLE|VIEW|INDEX)) [\p{L}_$(<"*&`]/u;
const MIN_OUTLINE = 3;
const MAX_OUTLINE = 200;
const MAX_OUTLINE_CHARS = 120;
const MAX_LINE_CHARS = 300;
const ENCODED = /[A-Za-z0-9+/_-]{400,}={0,2}/g;
/** Of the room for both. */
const HEAD_SHARE = 0.6;
/** The words before each of them. */
const MARKS_CHARS = 20;

export type Outline = { readonly kind: string; readonly lines: readonly string[] };

export function outlineLines(text: string): Outline {
  const lines = text.split('\n');
  const headings = numbered(lines, (line) => HEADING.test(line));
  if (headings.length >= MIN_OUTLINE) return { kind: 'Text', lines: ['Headings:', ...headings] };
  const definitions = numbered(lines, (line) => DEFINITION.test(line));
  if (definitions.length >= MIN_OUTLINE) {
    return { kind: 'Code', lines: ['Definitions:', ...definitions] };
  }
  return { kind: 'Text', lines: [] };
}

function numbered(lines: readonly string[], belongs: (line: string) => boolean): readonly string[] {
  const found = lines.flatMap((line, index) => {
    if (line.length > MAX_LINE_CHARS || !belongs(line)) return [];
    return [`  ${index + 1}: ${headOf(line.trim(), MAX_OUTLINE_CHARS)}`];
  });
  const left = found.length - MAX_OUTLINE;
  return left > 0 ? [...found.slice(0, MAX_OUTLINE), `  and ${left} more`] : found;
}

/** The first and the last lines, together at most `maxChars`; empty where there is no room for any. */
export function edgeLines(text: string, maxChars: number): string {
  const room = maxChars - MARKS_CHARS;
  if (room <= 0) return '';
  const headRoom = Math.floor(room * HEAD_SHARE);
  const head = keepFirstLines(readable(text.slice(0, headRoom * 2)), headRoom);
  const tail = keepLastLines(readable(text.slice(-room)), room - headRoom);
  return [
    ...(head === '' ? [] : ['Beginning:', head]),
    ...(tail === '' ? [] : ['End:', tail]),
  ].join('\n');
}

/** Long lines and encoded data cut, so that they leave room for what can be read. */
function readable(text: string): string {
  return text
    .replace(
      ENCODED,
      (data) => `[${data.length.toLocaleString('en-US')} characters of encoded data]`,
    )
    .split('\n')
    .map((line) =>
      line.length <= MAX_LINE_CHARS
        ? line
        : `${headOf(line, MAX_LINE_CHARS)}… [${line.length.toLocaleString('en-US')} characters]`,
    )
    .join('\n');
}
