// What is Lark's own about the fields of its events and answers.

import { fieldsOf } from '../../core/fields.ts';

/** Lark writes times and numbers as text in most places. */
export function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

/** The value behind a path of names. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inside, name) => fieldsOf(inside)?.[name], value);
}
