// Paths into the values of a workflow, e.g. `input.folder` or `mails.json.0.subject`, and templates
// that contain `{{ path }}`. A missing value is an error that names it, never an empty text;
// untrusted content is wrapped where a model reads it.

import { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../kernel/config/json.ts';
import { canonicalJson } from '../../../lib/json/json.ts';

const PART = '[A-Za-z0-9_][A-Za-z0-9_-]*';
/** Names and numbers separated by dots. */
export const PATH = new RegExp(`^${PART}(?:\\.${PART})*$`);
/** Name of a step and of the value it sets. */
export const STEP_NAME = /^[a-z][a-z0-9_]*$/;

/** Undefined where there is no such value. */
export function valueAtPath(values: JsonObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = values;
  for (const part of path.split('.')) {
    if (Array.isArray(value)) value = /^\d{1,6}$/.test(part) ? value[Number(part)] : undefined;
    else if (isJsonObject(value) && Object.hasOwn(value, part)) value = value[part];
    else return undefined;
  }
  return value;
}

export const rootOf = (path: string): string => path.split('.', 1).join();

/** The value that holds the inputs of a run. */
export const INPUT = 'input';

export type Filled<T> =
  | { readonly kind: 'filled'; readonly value: T; readonly isForeign: boolean }
  | { readonly kind: 'missing'; readonly paths: readonly string[] };

/** `foreign`: names of the values that contain untrusted content. */
type Scope = { readonly values: JsonObject; readonly foreign: readonly string[] };

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;
const WHOLE = /^\{\{([^{}]*)\}\}$/;

export function pathsIn(template: JsonValue): readonly string[] {
  if (typeof template === 'string') {
    return [...template.matchAll(PLACEHOLDER)].map(([, inner = '']) => inner.trim());
  }
  if (Array.isArray(template)) return template.flatMap(pathsIn);
  return isJsonObject(template) ? Object.values(template).flatMap(pathsIn) : [];
}

/** The first invalid placeholder, as written. */
export function badPlaceholder(template: JsonValue): string | undefined {
  return pathsIn(template).find((path) => !PATH.test(path));
}

/** For a model. `wrap` marks untrusted content. */
export function fillPrompt(
  template: string,
  scope: Scope,
  wrap: (path: string, text: string) => string,
): Filled<string> {
  const text = (path: string, value: JsonValue) =>
    isForeign(path, scope) ? wrap(path, textOf(value)) : textOf(value);
  return filled(template, scope, () => inText(template, scope, text));
}

/** For a tool, or as a value: a text that is one placeholder becomes the value itself. */
export function fillValue(template: JsonValue, scope: Scope): Filled<JsonValue> {
  return filled(template, scope, () => valueIn(template, scope));
}

function filled<T>(template: JsonValue, scope: Scope, value: () => T): Filled<T> {
  const paths = pathsIn(template);
  const missing = paths.filter((path) => valueAtPath(scope.values, path) === undefined);
  if (missing.length > 0) return { kind: 'missing', paths: [...new Set(missing)] };
  const isOthers = paths.some((path) => isForeign(path, scope));
  return { kind: 'filled', value: value(), isForeign: isOthers };
}

function valueIn(template: JsonValue, scope: Scope): JsonValue {
  if (typeof template === 'string') {
    const whole = WHOLE.exec(template.trim())?.[1]?.trim();
    const found = whole === undefined ? undefined : valueAtPath(scope.values, whole);
    return found ?? inText(template, scope, (_path, value) => textOf(value));
  }
  if (Array.isArray(template)) return template.map((each) => valueIn(each, scope));
  if (!isJsonObject(template)) return template;
  return Object.fromEntries(
    Object.entries(template).map(([key, value]) => [key, valueIn(value, scope)]),
  );
}

function inText(
  template: string,
  { values }: Scope,
  text: (path: string, value: JsonValue) => string,
): string {
  return template.replace(PLACEHOLDER, (whole, inner: string) => {
    const path = inner.trim();
    const value = valueAtPath(values, path);
    return value === undefined ? whole : text(path, value);
  });
}

const isForeign = (path: string, { foreign }: Scope) => foreign.includes(rootOf(path));

/** A list of texts as bullets, anything else as JSON. */
function textOf(value: JsonValue): string {
  if (typeof value === 'string') return value;
  const isPoints = Array.isArray(value) && value.every((each) => typeof each === 'string');
  if (isPoints) return value.length === 0 ? 'none' : value.map((each) => `- ${each}`).join('\n');
  return JSON.stringify(value, undefined, 1);
}

// Conditions on the values of a workflow: a small language that always evaluates. A missing value
// is not present, equals nothing and has no status. Nothing of it is code.

/** A test of one value, or of one step by its id. */
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

/** The input of a condition. `status`: of a step by its id, once it has run. */
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

/** Evaluates the condition with an answer for each of its tests. `not`: of what it negates. */
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

/** An empty text or list counts as missing. */
function isPresent(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === '') return false;
  return !(Array.isArray(value) && value.length === 0);
}

const isSame = (one: JsonValue, other: JsonValue) =>
  canonicalJson(JSON.stringify(one)) === canonicalJson(JSON.stringify(other));
