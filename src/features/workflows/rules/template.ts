// Paths into the values of a workflow, e.g. `input.folder` or `mails.json.0.subject`, and templates
// that contain `{{ path }}`, or loops and conditions. A missing value is an error that names it,
// never an empty text; untrusted content is wrapped where a model reads it.

import { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../kernel/config/json.ts';
import { canonicalJson } from '../../../lib/json/json.ts';
import { headOf } from '../../../lib/text/cut.ts';
import { t } from '../../../lib/texts.ts';
import { faultText, hasLogic, renderLogic, rootsOfLogic } from './liquid.ts';

const PART = '[A-Za-z0-9_][A-Za-z0-9_-]*';
/** Names and numbers separated by dots. */
export const PATH = new RegExp(`^${PART}(?:\\.${PART})*$`);

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

type Filled<T> =
  | { readonly kind: 'filled'; readonly value: T; readonly isForeign: boolean }
  | { readonly kind: 'failed'; readonly problem: string };

/** `foreign`: names of the values that contain untrusted content. */
type Scope = { readonly values: JsonObject; readonly foreign: readonly string[] };

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;
const WHOLE = /^\{\{([^{}]*)\}\}$/;

/** Of loops and conditions only the names of the values they read. */
export const pathsIn = (template: JsonValue): readonly string[] =>
  textsIn(template).flatMap((text) => (hasLogic(text) ? rootsOfLogic(text) : placeholdersIn(text)));

function textsIn(template: JsonValue): readonly string[] {
  if (typeof template === 'string') return [template];
  if (Array.isArray(template)) return template.flatMap(textsIn);
  return isJsonObject(template) ? Object.values(template).flatMap(textsIn) : [];
}

const placeholdersIn = (text: string) =>
  [...text.matchAll(PLACEHOLDER)].map(([, inner = '']) => inner.trim());

/** What is wrong in a template, with a remedy. */
export function templateFault(template: JsonValue): string | undefined {
  for (const text of textsIn(template)) {
    const fault = hasLogic(text) ? logicFault(text) : placeholderFault(text);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

const MAX_SHOWN_CHARS = 60;

function placeholderFault(text: string): string | undefined {
  const bad = placeholdersIn(text).find((path) => !PATH.test(path));
  if (bad === undefined) return undefined;
  return t`{{ ${headOf(bad, MAX_SHOWN_CHARS)} }} is not a path; write names with dots, like {{ input.topic }}`;
}

function logicFault(text: string): string | undefined {
  try {
    rootsOfLogic(text);
    return undefined;
  } catch (error) {
    return t`${faultText(error)}; write {% if %}, {% unless %}, {% case %} or {% for %} with their ends, and filters of Liquid`;
  }
}

/** For a model. `wrap` marks untrusted content. */
export function fillPrompt(
  template: string,
  scope: Scope,
  wrap: (path: string, text: string) => string,
): Filled<string> {
  const marked = (path: string, text: string) => (isForeign(path, scope) ? wrap(path, text) : text);
  return filled(template, scope, () => inText(template, scope, marked));
}

/** For a tool, or as a value: a text that is one placeholder becomes the value itself. */
export function fillValue(template: JsonValue, scope: Scope): Filled<JsonValue> {
  return filled(template, scope, () => valueIn(template, scope));
}

function filled<T>(template: JsonValue, scope: Scope, value: () => T): Filled<T> {
  const plain = textsIn(template).filter((text) => !hasLogic(text));
  const missing = plain
    .flatMap(placeholdersIn)
    .filter((path) => valueAtPath(scope.values, path) === undefined);
  if (missing.length > 0) {
    return { kind: 'failed', problem: t`there is no value at ${[...new Set(missing)].join(', ')}` };
  }
  try {
    const isOthers = pathsIn(template).some((path) => isForeign(path, scope));
    return { kind: 'filled', value: value(), isForeign: isOthers };
  } catch (error) {
    return { kind: 'failed', problem: faultText(error) };
  }
}

function valueIn(template: JsonValue, scope: Scope): JsonValue {
  if (typeof template === 'string') {
    const whole = WHOLE.exec(template.trim())?.[1]?.trim();
    const found = whole === undefined ? undefined : valueAtPath(scope.values, whole);
    return found ?? inText(template, scope, (_path, text) => text);
  }
  if (Array.isArray(template)) return template.map((each) => valueIn(each, scope));
  if (!isJsonObject(template)) return template;
  return Object.fromEntries(
    Object.entries(template).map(([key, value]) => [key, valueIn(value, scope)]),
  );
}

/** @throws an error where loops or conditions fail */
function inText(
  template: string,
  { values, foreign }: Scope,
  marked: (path: string, text: string) => string,
): string {
  if (hasLogic(template)) {
    // A loop or condition that reads untrusted content is untrusted as a whole.
    return renderLogic(template, values, valueText, (text, roots) => {
      const [root] = roots.filter((name) => foreign.includes(name));
      return root === undefined ? text : marked(root, text);
    });
  }
  return template.replace(PLACEHOLDER, (whole, inner: string) => {
    const path = inner.trim();
    const value = valueAtPath(values, path);
    return value === undefined ? whole : marked(path, textOf(value));
  });
}

const isForeign = (path: string, { foreign }: Scope) => foreign.includes(rootOf(path));

const valueText = (value: unknown) =>
  value === undefined || value === null ? '' : textOf(value as JsonValue);

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
