// What a run of a workflow is given: checked against the schemas of its inputs, defaults filled in. What
// is typed as key=value becomes what the schema says.

import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../../kernel/config/json.ts';
import type { Workflow } from './definition.ts';

export type ReadInputs =
  | { readonly kind: 'valid'; readonly input: JsonObject }
  /** `problem` names the input and what is wanted. */
  | { readonly kind: 'broken'; readonly problem: string };

const MAX_CHARS = 20_000;
const PAIR = /([A-Za-z0-9_]+)=("(?:[^"\\]|\\.)*"|\S*)/g;

export function readInputs({ inputs }: Workflow, given: JsonObject): ReadInputs {
  const defaults = Object.entries(inputs).flatMap(([name, schema]) =>
    schema.default === undefined ? [] : [[name, schema.default] as const],
  );
  const whole = { ...Object.fromEntries(defaults), ...given };
  if (JSON.stringify(whole).length > MAX_CHARS) {
    return { kind: 'broken', problem: `The inputs are longer than ${MAX_CHARS} characters.` };
  }
  const names = Object.keys(inputs);
  const unknown = Object.keys(whole).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const there = names.length === 0 ? 'it takes none' : `it takes ${names.join(', ')}`;
    return { kind: 'broken', problem: `There is no input "${unknown}"; ${there}.` };
  }
  for (const [name, schema] of Object.entries(inputs)) {
    const value = Object.hasOwn(whole, name) ? whole[name] : undefined;
    if (value === undefined) {
      return { kind: 'broken', problem: `The input "${name}" is missing${meaning(schema)}.` };
    }
    const parsed = z.fromJSONSchema(schema).safeParse(value);
    if (!parsed.success) {
      const problem = parsed.error.issues[0]?.message ?? 'it does not fit';
      return { kind: 'broken', problem: `The input "${name}" does not fit: ${problem}.` };
    }
  }
  return { kind: 'valid', input: whole };
}

/** `typed`: `key=value key="two words"`; undefined where something is no such pair. */
export function typedInputs(workflow: Workflow, typed: string): JsonObject | undefined {
  const pairs = [...typed.matchAll(PAIR)];
  if (typed.replace(PAIR, '').trim() !== '') return undefined;
  return Object.fromEntries(
    pairs.map(([, name = '', value = '']) => {
      const schema = Object.hasOwn(workflow.inputs, name) ? workflow.inputs[name] : undefined;
      return [name, typedValue(schema?.['type'], unquoted(value))] as const;
    }),
  );
}

function typedValue(type: JsonValue | undefined, text: string): JsonValue {
  if (type === undefined || type === 'string') return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function unquoted(text: string): string {
  if (!text.startsWith('"')) return text;
  return text.slice(1, -1).replace(/\\(["\\])/g, '$1');
}

function meaning({ description }: JsonObject): string {
  return typeof description === 'string' ? ` (${description})` : '';
}

/** `typed`: the name of a workflow with its inputs behind it. */
export function namedAs(typed: string): { readonly workflow: string; readonly input: string } {
  const [workflow = ''] = typed.trim().split(/\s+/, 1);
  return { workflow, input: typed.trim().slice(workflow.length).trim() };
}
