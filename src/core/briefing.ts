// What a model is shown of a result that is too long to be shown whole: what kind of text it is, how it
// is built, the facts that can be counted, its beginning and its end, and how to read on. Reading on
// itself is result-part.ts.

import { jsonLines, jsonParsed } from './briefing-json.ts';
import { tableLines, tableOf } from './briefing-table.ts';
import { edgeLines, outlineLines } from './briefing-text.ts';
import type { ResultId } from './ids.ts';
import { linesOf } from './line-range.ts';
import { keepFirstLines } from './truncate.ts';

/** Of the room, for how it is built. */
const STRUCTURE_SHARE = 0.5;

export type Briefing = {
  /** Our line: what it is, and how to read on. */
  readonly head: string;
  /** From the text itself. */
  readonly body: string;
};

/** Head and body together take at most `maxChars`, where that is room enough for the head. */
export function briefingOf(text: string, id: ResultId, maxChars: number): Briefing {
  const { kind, structure, hint } = describe(text);
  const lines = linesOf(text).length;
  const size = `${text.length.toLocaleString('en-US')} characters, ${lines.toLocaleString('en-US')} lines`;
  const head = `[${kind}, ${size}: too long to be shown whole. All of it is kept as result "${id}": read_result with ${hint}.]`;
  const room = Math.max(0, maxChars - head.length - 1);
  const built = keepFirstLines(structure.join('\n'), Math.floor(room * STRUCTURE_SHARE));
  const edges = edgeLines(text, room - built.length - 1);
  return {
    head,
    body: [built, edges]
      .filter((part) => part !== '')
      .join('\n')
      .toWellFormed(),
  };
}

type Description = {
  readonly kind: string;
  readonly structure: readonly string[];
  /** How to read on in such a text. */
  readonly hint: string;
};

function describe(text: string): Description {
  const json = jsonParsed(text);
  if (json !== undefined) {
    return {
      kind: 'JSON',
      structure: jsonLines(json.value),
      hint: 'path (like items[3].name) or search reads parts of it',
    };
  }
  const table = tableOf(text);
  if (table !== undefined) {
    return {
      kind: 'Table',
      structure: tableLines(table),
      hint: 'lines (like 10:60) or search reads parts of it',
    };
  }
  const outline = outlineLines(text);
  return {
    kind: outline.kind,
    structure: outline.lines,
    hint: 'lines (like 10:60), from (a character) or search reads parts of it',
  };
}
