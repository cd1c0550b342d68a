// What is wrong with a value in a file that a person wrote: field, value and remedy, in one line.

import type { z } from 'zod';

const MAX_VALUE_CHARS = 60;

/** `remedies` by field, dotted, or by its first part; `fields`: what the file may hold. */
export function valueProblem(
  error: z.ZodError,
  values: unknown,
  remedies: Readonly<Record<string, string>>,
  fields: readonly string[],
): string {
  const [issue] = error.issues;
  const path = pathOf(issue);
  const field = path.filter((part) => typeof part === 'string').join('.') || 'the file';
  const known = remedies[field] ?? remedies[field.split('.', 1).join()];
  return `${field}: ${shownValue(values, path)}; ${known ?? `it may hold ${fields.join(', ')}`}`;
}

function pathOf(issue: z.core.$ZodIssue | undefined): readonly PropertyKey[] {
  const path = issue?.path ?? [];
  return issue?.code === 'unrecognized_keys' ? [...path, issue.keys[0] ?? ''] : path;
}

function shownValue(values: unknown, path: readonly PropertyKey[]): string {
  let value: unknown = values;
  for (const part of path) {
    value =
      typeof value === 'object' && value !== null
        ? (value as Readonly<Record<PropertyKey, unknown>>)[part]
        : undefined;
  }
  if (value === undefined) return 'it is missing';
  const text = JSON.stringify(value).slice(0, MAX_VALUE_CHARS).toWellFormed();
  return `${text} does not fit`;
}
