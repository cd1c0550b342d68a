// Conditions over the values of a workflow: a small language that always has an answer. What is not
// there is not present, equals nothing and has no status. Nothing of it is code.

import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../../kernel/config/json.ts';
import { canonicalJson } from '../../../lib/json/json.ts';
import { PATH, valueAtPath } from './template.ts';

/** What looks at one value, or at one step by its id. */
export type Test =
  | { readonly present: string }
  | { readonly equals: { readonly path: string; readonly value: JsonValue } }
  | { readonly done: string }
  | { readonly failed: string };

export type Condition =
  | Test
  | { readonly not: Condition }
  | { readonly and: readonly Condition[] }
  | { readonly or: readonly Condition[] };

/** What a condition looks at. `status`: of a step by its id, once it has run. */
type Flags = {
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

/** The condition with an answer for each of its tests. `not`: of what it negates. */
export function evaluated(
  condition: Condition,
  answer: (test: Test) => boolean,
  not = (inner: boolean) => !inner,
): boolean {
  const inner = (each: Condition) => evaluated(each, answer, not);
  if ('not' in condition) return not(inner(condition.not));
  if ('and' in condition) return condition.and.every(inner);
  return 'or' in condition ? condition.or.some(inner) : answer(condition);
}

export function testsIn(condition: Condition): readonly Test[] {
  if ('not' in condition) return testsIn(condition.not);
  if ('and' in condition) return condition.and.flatMap(testsIn);
  return 'or' in condition ? condition.or.flatMap(testsIn) : [condition];
}

/** The path of the value, or the id of the step. */
export function lookedAt(test: Test): { readonly path?: string; readonly step?: string } {
  if ('present' in test) return { path: test.present };
  if ('equals' in test) return { path: test.equals.path };
  return { step: 'done' in test ? test.done : test.failed };
}

export const holds = (condition: Condition, { values, status }: Flags): boolean =>
  evaluated(condition, (test) => {
    if ('done' in test) return status(test.done) === 'done';
    if ('failed' in test) return status(test.failed) === 'failed';
    if ('present' in test) return isPresent(valueAtPath(values, test.present));
    const found = valueAtPath(values, test.equals.path);
    return found !== undefined && isSame(found, test.equals.value);
  });

/** An empty text or list is as good as none. */
function isPresent(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === '') return false;
  return !(Array.isArray(value) && value.length === 0);
}

const isSame = (one: JsonValue, other: JsonValue) =>
  canonicalJson(JSON.stringify(one)) === canonicalJson(JSON.stringify(other));
