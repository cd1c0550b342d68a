// The briefing of a result that is too long for the model: its kind of text, its structure,
// countable facts, beginning and end, and how to read more. agent/rules/document-text.ts reads the
// parts.

import type { ResultId } from '../../../kernel/message/ids.ts';
import { headOf, keepFirstLines, keepLastLines, linesOf } from '../../../lib/text/cut.ts';

/** Share of the room for the structure. */
const STRUCTURE_SHARE = 0.5;

/**
 * `head`: our line with the kind of text, and how to read more; `body`: from the text itself. Both
 * together have at most `maxChars` characters, if the head alone fits.
 */
export function briefingOf(text: string, id: ResultId, maxChars: number) {
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

/** `hint`: how to read more of such a text. */
function describe(text: string) {
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

// Briefs prose, code and logs: an outline with line numbers where the text has one, and its first
// and last lines. Unreadable parts (encoded data, endless lines) are cut.

const HEADING = /^(?:#{1,6} \S|(?:={3,}|-{3,}) \S.* (?:={3,}|-{3,})$)/;
/** Definitions at the beginning of a line in common programming languages. */
const DEFINITION =
  /^\s{0,4}(?:(?:export|public|private|protected|static|a(?:bstract|sync)|default|pub(?:\([a-z]+\))?|final|override) )*(?:function\*?|class|interface|type|enum|def|fn|func|struct|trait|impl|module|namespace|object|record|sub|CREATE (?:TABLE|VIEW|INDEX)) [\p{L}_$(<"*&`]/u;
const MIN_OUTLINE = 3;
const MAX_OUTLINE = 200;
const MAX_OUTLINE_CHARS = 120;
const MAX_LINE_CHARS = 300;
const ENCODED = /[A-Za-z0-9+/_-]{400,}={0,2}/g;
/** Share of the first lines; the last lines get the rest. */
const HEAD_SHARE = 0.6;
/** Length of the labels before them. */
const MARKS_CHARS = 20;

type Outline = { readonly kind: string; readonly lines: readonly string[] };

function outlineLines(text: string): Outline {
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

/**
 * The first and the last lines, together at most `maxChars`; empty where there is no room for any.
 */
function edgeLines(text: string, maxChars: number): string {
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

/** Cuts long lines and encoded data to leave room for readable text. */
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

// Briefs a table with commas, tabs, semicolons or bars as separators: its columns, its number of
// rows, and facts about each column.

type Table = {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
};

const SEPARATORS = ['\t', ',', ';', '|'];
const MIN_ROWS = 4;
const MAX_COLUMNS = 40;
/** Maximum number of rows that are counted. */
const MAX_ROWS = 20_000;
/** Below 1, because quoted cells may contain separators or line ends. */
const MIN_REGULAR_SHARE = 0.9;
const MAX_NAME_CHARS = 60;

/** Undefined where the text is not a table. */
export function tableOf(text: string): Table | undefined {
  const lines = text
    .split('\n', MAX_ROWS)
    .map((line) => line.trimEnd())
    .filter((line) => line !== '' && !/^[|\s:-]+$/.test(line));
  const [first = '', ...rest] = lines;
  if (rest.length < MIN_ROWS) return undefined;
  for (const separator of SEPARATORS) {
    const columns = cellsOf(first, separator);
    if (columns.length < 2 || columns.some((name) => name.length > MAX_NAME_CHARS)) continue;
    const rows = rest.map((line) => cellsOf(line, separator));
    const regular = rows.filter((row) => row.length === columns.length);
    if (regular.length >= rows.length * MIN_REGULAR_SHARE) return { columns, rows: regular };
  }
  return undefined;
}

/** RFC 4180 without line ends inside quotes. */
function cellsOf(line: string, separator: string): readonly string[] {
  const inner = separator === '|' ? line.replace(/^\s*\||\|\s*$/g, '') : line;
  if (!inner.includes('"')) return inner.split(separator).map((cell) => cell.trim());
  const cells: string[] = [];
  let cell = '';
  let isQuoted = false;
  for (const char of inner) {
    if (char === '"') isQuoted = !isQuoted;
    else if (char === separator && !isQuoted) {
      cells.push(cell.trim());
      cell = '';
    } else cell += char;
  }
  return [...cells, cell.trim()];
}

function tableLines({ columns, rows }: Table): readonly string[] {
  const shown = columns.slice(0, MAX_COLUMNS);
  const left = columns.length - shown.length;
  return [
    `${columns.length} columns, ${rows.length.toLocaleString('en-US')} rows below the first line:`,
    ...shown.map((name, index) => {
      const fact = factOf(rows.map((row) => cellValue(row[index] ?? '')));
      return `  ${name === '' ? `(column ${index + 1})` : name}${fact === undefined ? '' : `: ${fact}`}`;
    }),
    ...(left > 0 ? [`  ${left} more columns`] : []),
  ];
}

function cellValue(cell: string): string | number {
  return /^-?\d{1,15}(?:\.\d{1,15})?$/.test(cell) ? Number(cell) : cell;
}

// Briefs JSON: its shape with keys, types and sizes, one sample of each list, and facts about lists
// of records.

const MAX_DEPTH = 4;
const MAX_KEYS = 40;
const MAX_VALUE_CHARS = 80;
const MAX_FACTS = 30;
/** Maximum number of records from which facts are derived. */
const MAX_RECORDS = 20_000;
const MIN_RECORDS = 3;
const MAX_CHOICES = 6;

/** Only objects and lists; undefined for other texts. */
export function jsonParsed(text: string): { readonly value: object } | undefined {
  const start = /\S/.exec(text)?.[0];
  if (start !== '{' && start !== '[') return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { value } : undefined;
  } catch {
    return recordsPerLine(text);
  }
}

/** JSON Lines: one value per line. */
function recordsPerLine(text: string): { readonly value: object } | undefined {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  if (lines.length < MIN_RECORDS || !lines[0]?.trimEnd().endsWith('}')) return undefined;
  try {
    return { value: lines.map((line): unknown => JSON.parse(line)) };
  } catch {
    return undefined;
  }
}

export function jsonLines(value: unknown): readonly string[] {
  return ['Shape:', ...shapeOf(value, '$', 0), ...factsOf(value)];
}

/** One line per place; the paths are those that the model can request. */
function shapeOf(value: unknown, path: string, depth: number): readonly string[] {
  if (!isStructure(value)) return [`${path}: ${shortValue(value)}`];
  if (Array.isArray(value)) {
    const line = `${path}: list of ${value.length.toLocaleString('en-US')}`;
    if (value.length === 0 || depth >= MAX_DEPTH) return [line];
    return [line, ...shapeOf(value[0], `${path}[0]`, depth + 1)];
  }
  const entries = Object.entries(value);
  const line = `${path}: object with ${entries.length.toLocaleString('en-US')} keys`;
  if (depth >= MAX_DEPTH) return [line];
  const shown = entries.slice(0, MAX_KEYS);
  // Short values first, so that nested sections do not push them out of the limit.
  const simple = shown.filter(([, inner]) => !isStructure(inner));
  const nested = shown.filter(([, inner]) => isStructure(inner));
  const left = entries.length - shown.length;
  return [
    line,
    ...[...simple, ...nested].flatMap(([key, inner]) =>
      shapeOf(inner, path + stepOf(key), depth + 1),
    ),
    ...(left > 0 ? [`${path}: ${left.toLocaleString('en-US')} more keys`] : []),
  ];
}

/** A path step as `valueAtPath` reads it. */
export function stepOf(key: string): string {
  return /^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

const isStructure = (value: unknown): value is object =>
  typeof value === 'object' && value !== null;

export function shortValue(value: unknown): string {
  const text = JSON.stringify(value) ?? 'null';
  if (text.length <= MAX_VALUE_CHARS) return text;
  return `${headOf(text, MAX_VALUE_CHARS)}… (${text.length.toLocaleString('en-US')} characters)`;
}

/**
 * Facts about the longest list of records: range and sum of numbers, frequencies of texts with few
 * values.
 */
function factsOf(value: unknown): readonly string[] {
  const found = longestRecords(value, '$', 0);
  if (found === undefined) return [];
  const records = found.records.slice(0, MAX_RECORDS);
  const keys = [...new Set(records.slice(0, MAX_KEYS).flatMap((record) => Object.keys(record)))];
  const facts = keys.flatMap((key) => {
    const values = records.map((record) => ownValue(record, key));
    const fact = factOf(values);
    return fact === undefined ? [] : [`  ${key}: ${fact}`];
  });
  if (facts.length === 0) return [];
  const count = records.length.toLocaleString('en-US');
  return [`Facts about the ${count} records of ${found.path}:`, ...facts.slice(0, MAX_FACTS)];
}

/** Undefined also where the property does not exist. */
export function ownValue(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}

type Records = { readonly path: string; readonly records: readonly object[] };

function longestRecords(value: unknown, path: string, depth: number): Records | undefined {
  if (!isStructure(value) || depth > 2) return undefined;
  if (Array.isArray(value)) {
    const isList = value.length >= MIN_RECORDS && value.every((item) => isStructure(item));
    return isList ? { path, records: value } : undefined;
  }
  return Object.entries(value)
    .slice(0, MAX_KEYS)
    .map(([key, inner]) => longestRecords(inner, path + stepOf(key), depth + 1))
    .reduce(
      (best, next) => ((next?.records.length ?? 0) > (best?.records.length ?? 0) ? next : best),
      undefined,
    );
}

/** Undefined where there is nothing to count. */
function factOf(values: readonly unknown[]): string | undefined {
  const numbers = values.filter((value) => typeof value === 'number');
  if (numbers.length >= MIN_RECORDS && numbers.length >= values.length / 2) {
    return rangeText(numbers);
  }
  const simple = values.filter((value) => typeof value === 'string' || typeof value === 'boolean');
  const counts = Map.groupBy(simple, (value) => value);
  if (simple.length < MIN_RECORDS || counts.size > MAX_CHOICES) return undefined;
  return [...counts]
    .toSorted(([, one], [, other]) => other.length - one.length)
    .map(([value, all]) => `${shortValue(value)} × ${all.length.toLocaleString('en-US')}`)
    .join(', ');
}

function rangeText(numbers: readonly number[]): string {
  let [least, most, sum] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  for (const number of numbers) {
    least = Math.min(least, number);
    most = Math.max(most, number);
    sum += number;
  }
  const plain = (value: number) => Number(value.toPrecision(12)).toString();
  return `${plain(least)} to ${plain(most)}, sum ${plain(sum)}, ${numbers.length.toLocaleString('en-US')} values`;
}
