// JSON of unknown origin: typed access to fields, strict parsing with a depth limit, canonical
// text, and validated rows of a store.

import { z } from 'zod';
import { headOf } from '../text/cut.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** The value of JSON text; undefined if it is invalid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Neither an array nor `null`. */
export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const fieldsOf = (value: unknown): Fields | undefined =>
  isObject(value) ? value : undefined;

export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.toWellFormed() : undefined;

/** Vendors' ids fit 52 bits; anything else is rejected. */
export const integerOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) ? Number(value) : undefined;

/** Drops the members that are undefined, for a type in which they may be absent. */
export const defined = <Members extends object>(members: Members) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Members]?: Exclude<Members[Key], undefined>;
  };

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

// JSON that a model or a tool wrote, read so that it can be written again: JSON nested thousands
// deep can be parsed, but writing it overflows the stack, and it would stay in its conversation
// permanently.

/** Far deeper than any tool requires, as levels of arrays and objects. */
const MAX_DEPTH = 200;
const AT = /at position (\d+)/;

export type ReadJson =
  | { readonly kind: 'parsed'; readonly value: unknown }
  | { readonly kind: 'unreadable'; readonly problem: string };

export function readJson(text: string): ReadJson {
  try {
    const value: unknown = JSON.parse(text);
    if (!isDeeper(value, MAX_DEPTH)) return { kind: 'parsed', value };
    return { kind: 'unreadable', problem: 'it is nested too deep' };
  } catch (error) {
    const problem = error instanceof Error ? error.message : '';
    return { kind: 'unreadable', problem: `${problem}${isCut(problem, text) ? CUT : ''}` };
  }
}

const CUT =
  '. It ends in the middle, as what reaches the length limit of one answer does: give less in one call, and a long text in several';

const isCut = (problem: string, { length }: string) =>
  problem.startsWith('Unexpected end') || AT.exec(problem)?.[1] === `${length}`;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

// JSON in a canonical spelling: equal values compare equal, whatever the order of their keys.

/** Text that is no JSON is only trimmed. */
export function canonicalJson(text: string): string {
  try {
    return JSON.stringify(ordered(JSON.parse(text)));
  } catch {
    return text.trim();
  }
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, ordered(inner)] as const);
  return Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1)));
}

// Rows of JSON from a store: a row that is damaged or has an unexpected form counts as missing, and
// stops nothing.

type RequiredKeys<T> = {
  [K in keyof T]-?: Record<never, never> extends Pick<T, K> ? never : K;
}[keyof T];

/** The checked part of a row; further fields stay as they are. */
export type RowShape<T> = z.ZodType & { readonly row?: T };

/** Every required field, and those optional ones that the reader relies on. */
type RowFields<T> = { readonly [K in RequiredKeys<T>]: z.ZodType } & {
  readonly [K in keyof T]?: z.ZodType;
};

export const rowShape = <T>(fields: RowFields<T>): RowShape<T> => z.looseObject({ ...fields });

export const listShape = <T>(shape: RowShape<T>): RowShape<readonly T[]> => z.array(shape);

/** Fields of rows. */
export const text = z.string();
export const number = z.number();
export const flag = z.boolean();
export const texts = z.array(z.string());
export const object = z.looseObject({});
export const objects = z.array(object);
/** Given by a person or a model: not empty, without space around it. */
export const givenText = (most: number) => z.string().trim().min(1).max(most);
/** A union of forms with a discriminator. */
export const kind = z.looseObject({ kind: z.string() });
export const place = z.looseObject({ channel: z.string(), account: z.string(), chat: z.string() });

/** The value as the schema makes it; undefined if there is none, or it is damaged. */
export const storedJson = <T>(schema: z.ZodType<T>, json: string | undefined): T | undefined =>
  json === undefined ? undefined : schema.safeParse(parseJson(json)).data;

/** Undefined if there is none, or it is damaged or of another form. */
export function jsonRow<T>(json: string | undefined, shape: RowShape<T>): T | undefined {
  if (json === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  // The value itself: unchecked fields stay in it.
  return shape.safeParse(value).success ? (value as T) : undefined;
}

// Problems of a value in a file that a person wrote: field, value and remedy, in one line.

/** The content of a declaration file, or why it cannot be used. */
export type ReadFile<T> =
  | { readonly kind: 'valid'; readonly value: T }
  /** `problem` names field, value and remedy. */
  | {
      readonly kind: 'broken';
      readonly name: string;
      readonly problem: string;
      /** Further problems. */
      readonly more?: readonly string[];
    };

export const broken = (name: string, problem = '', ...more: readonly string[]) =>
  ({ kind: 'broken', name, problem, more }) as const;

const MAX_VALUE_CHARS = 60;

type Known = readonly [
  /** By field, dotted, or by its first part. */
  remedies: Readonly<Record<string, string>>,
  /** Known fields of the file. */
  fields: readonly string[],
];

/** All problems, in the order in which they were found. */
export const valueProblems = (error: z.ZodError, values: unknown, ...known: Known) =>
  eachIssue(error).map((issue) => problemOf(issue, values, ...known));

/** One issue for each unknown field. */
export const eachIssue = ({ issues }: z.ZodError): readonly z.core.$ZodIssue[] =>
  issues.flatMap((issue): readonly z.core.$ZodIssue[] =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ ...issue, keys: [key] }))
      : [issue],
  );

function problemOf(
  issue: z.core.$ZodIssue | undefined,
  values: unknown,
  ...[remedies, fields]: Known
): string {
  const path = pathOf(issue);
  const field = path.filter((part) => typeof part === 'string').join('.') || 'the file';
  const known = remedies[field] ?? remedies[field.split('.', 1).join()];
  return `${field}: ${shownValue(values, path)}; ${known ?? `it may hold ${fields.join(', ')}`}`;
}

/** The path of the field, including an unknown one. */
export function pathOf(issue: z.core.$ZodIssue | undefined): readonly PropertyKey[] {
  const path = issue?.path ?? [];
  return issue?.code === 'unrecognized_keys' ? [...path, issue.keys[0] ?? ''] : path;
}

export function shownValue(values: unknown, path: readonly PropertyKey[]): string {
  let value: unknown = values;
  for (const part of path) {
    value =
      typeof value === 'object' && value !== null
        ? (value as Readonly<Record<PropertyKey, unknown>>)[part]
        : undefined;
  }
  if (value === undefined) return 'it is missing';
  const text = headOf(JSON.stringify(value), MAX_VALUE_CHARS);
  return `${text} does not fit`;
}

/** A constant that is computed when it is first needed: one that takes time or memory. */
export function onFirstUse<T extends object>(compute: () => T): () => T {
  let known: T | undefined;
  return () => {
    known ??= compute();
    return known;
  };
}
