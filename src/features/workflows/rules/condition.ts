// Conditions over the values of a workflow: a small language that always has an answer. What is not
// there is not present, equals nothing and has no status. Nothing of it is code.

import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../../kernel/config/json.ts';
import { canonicalJson } from '../../../lib/json/json.ts';
import { PATH, valueAtPath } from './path.ts';

export type Condition =
  | { readonly present: string }
  | { readonly equals: { readonly path: string; readonly value: JsonValue } }
  /** A step by its id. */
  | { readonly done: string }
  | { readonly failed: string }
  | { readonly not: Condition }
  | { readonly and: readonly Condition[] }
  | { readonly or: readonly Condition[] };

/** What a condition looks at. `status`: of a step by its id, once it has run. */
export type Flags = {
  readonly values: JsonObject;
  status(step: string): 'done' | 'failed' | undefined;
};

const MAX_PARTS = 20;

const path = z.string().regex(PATH);

export const conditionSchema: z.ZodType<Condition> = z.lazy(() =>
  z.union([
    z.strictObject({ present: path }),
    z.strictObject({ equals: z.strictObject({ path, value: z.json() }) }),
    z.strictObject({ done: z.string() }),
    z.strictObject({ failed: z.string() }),
    z.strictObject({ not: conditionSchema }),
    z.strictObject({ and: z.array(conditionSchema).min(1).max(MAX_PARTS) }),
    z.strictObject({ or: z.array(conditionSchema).min(1).max(MAX_PARTS) }),
  ]),
);

export function holds(condition: Condition, flags: Flags): boolean {
  if ('present' in condition) return isPresent(valueAtPath(flags.values, condition.present));
  if ('equals' in condition) {
    const found = valueAtPath(flags.values, condition.equals.path);
    return found !== undefined && isSame(found, condition.equals.value);
  }
  if ('done' in condition) return flags.status(condition.done) === 'done';
  if ('failed' in condition) return flags.status(condition.failed) === 'failed';
  if ('not' in condition) return !holds(condition.not, flags);
  if ('and' in condition) return condition.and.every((each) => holds(each, flags));
  return condition.or.some((each) => holds(each, flags));
}

/** What a condition names: paths by their first part, and steps. */
export function namedIn(condition: Condition): {
  readonly roots: readonly string[];
  readonly steps: readonly string[];
} {
  const root = (of: string) => ({ roots: [of.split('.', 1).join()], steps: [] });
  if ('present' in condition) return root(condition.present);
  if ('equals' in condition) return root(condition.equals.path);
  if ('done' in condition) return { roots: [], steps: [condition.done] };
  if ('failed' in condition) return { roots: [], steps: [condition.failed] };
  if ('not' in condition) return namedIn(condition.not);
  const parts = ('and' in condition ? condition.and : condition.or).map(namedIn);
  return {
    roots: parts.flatMap(({ roots }) => roots),
    steps: parts.flatMap(({ steps }) => steps),
  };
}

/** An empty text or list is as good as none. */
function isPresent(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === '') return false;
  return !(Array.isArray(value) && value.length === 0);
}

const isSame = (one: JsonValue, other: JsonValue) =>
  canonicalJson(JSON.stringify(one)) === canonicalJson(JSON.stringify(other));
