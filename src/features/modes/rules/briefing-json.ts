// JSON that is too long to be shown: its shape, with keys, types and sizes, one sample of each list, and
// what can be counted in lists of records.

import { headOf } from '../../../lib/text/cut.ts';

const MAX_DEPTH = 4;
const MAX_KEYS = 40;
const MAX_VALUE_CHARS = 80;
const MAX_FACTS = 30;
/** Records that are looked at for facts. */
const MAX_RECORDS = 20_000;
const MIN_RECORDS = 3;
const MAX_CHOICES = 6;

/** Objects and lists only; undefined where the text is something else. */
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

/** One line per place, as paths that can be asked for. */
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
  // What is short first: whole sections below must not push the keys beside them out of sight.
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

/** As `valueAtPath` reads it. */
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

/** Of the longest list of records: for numbers the range and the sum, for words with few values each. */
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

/** Undefined also where there is none. */
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
export function factOf(values: readonly unknown[]): string | undefined {
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
