// What is wrong with a value in a file that a person wrote: field, value and remedy, in one line.

import type { z } from 'zod';
import { headOf } from '../text/cut.ts';

/** What a file declares, or why it cannot be used. */
export type ReadFile<T> =
  | { readonly kind: 'valid'; readonly value: T }
  /** `problem` names field, value and remedy. */
  | {
      readonly kind: 'broken';
      readonly name: string;
      readonly problem: string;
      /** What else is wrong with it. */
      readonly more?: readonly string[];
    };

export const broken = (name: string, problem = '', ...more: readonly string[]) =>
  ({ kind: 'broken', name, problem, more }) as const;

const MAX_VALUE_CHARS = 60;

type Known = readonly [
  /** By field, dotted, or by its first part. */
  remedies: Readonly<Record<string, string>>,
  /** What the file may hold. */
  fields: readonly string[],
];

export const valueProblem = (error: z.ZodError, values: unknown, ...known: Known) =>
  problemOf(error.issues[0], values, ...known);

/** All of them, in the order in which they were found. */
export const valueProblems = (error: z.ZodError, values: unknown, ...known: Known) =>
  eachIssue(error).map((issue) => problemOf(issue, values, ...known));

/** Fields that there are not, one by one. */
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

/** To the field; to the one that there is not. */
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
