// A table of values between commas, tabs, semicolons or bars that is too long to be shown: its columns,
// its rows, and what can be counted in each column.

import { factOf } from './briefing-json.ts';

export type Table = {
  readonly separator: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
};

const SEPARATORS = ['\t', ',', ';', '|'];
const MIN_ROWS = 4;
const MAX_COLUMNS = 40;
/** Rows that are counted. */
const MAX_ROWS = 20_000;
/** A row is a row although its quoted text holds separators or line ends. */
const MIN_REGULAR_SHARE = 0.9;
const MAX_NAME_CHARS = 60;

/** Undefined where the text is no table. */
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
    if (regular.length >= rows.length * MIN_REGULAR_SHARE)
      return { separator, columns, rows: regular };
  }
  return undefined;
}

/** RFC 4180 without line ends inside of quotes. */
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

export function tableLines({ columns, rows }: Table): readonly string[] {
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
