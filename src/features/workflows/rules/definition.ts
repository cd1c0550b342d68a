// The file formats of workflows and capabilities. A capability declares what a model does and the
// schema of its answer; a workflow declares steps and the conditions under which they run.

import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../../kernel/config/json.ts';
import { givenText } from '../../../lib/json/json.ts';
import { t } from '../../../lib/texts.ts';
import { conditionSchema, INPUT } from './template.ts';

const FILE_NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
/** Name of a step and of the value it sets. */
const STEP_NAME = /^[a-z][a-z0-9_]*$/;
export const MAX_TEXT = 20_000;
export const MAX_STEPS = 50;

export const isFileName = (typed: string) => FILE_NAME.test(typed) && typed.length <= 60;

const whole = (least: number, most: number) => z.int().min(least).max(most);
const name = z.string().regex(STEP_NAME).max(40);
const ownName = name.refine((id) => id !== INPUT);
const json = z.record(z.string(), z.json());

export const capabilitySchema = z.strictObject({
  description: givenText(500),
  /** Contains `{{ path }}` for values that a step passes. */
  prompt: givenText(MAX_TEXT),
  /** JSON Schema of the answer. */
  output: json,
  /** `main`, `fast` or a model name as /model accepts it. */
  model: givenText(200).default('main'),
  limits: z
    .strictObject({
      /** Longest answer. */
      tokens: whole(16, 100_000).default(2000),
      /** Attempts until an answer matches the schema. */
      tries: whole(1, 5).default(3),
    })
    .prefault({}),
});

const step = {
  id: ownName,
  /** Name shown to people. */
  label: givenText(80).optional(),
  when: conditionSchema.optional(),
  /** The value it sets. */
  sets: ownName.optional(),
  /** Attempts after a failure. */
  retries: whole(0, 5).default(0),
  onFailure: z.enum(['stop', 'continue']).default('stop'),
  /** Maximum runs of the step per workflow run; it is repeated only after a value changed. */
  runs: whole(1, 50).default(1),
  /** Sent to the chat when it starts. */
  say: givenText(500).optional(),
};

const skillStep = z.strictObject({
  ...step,
  kind: z.literal('llm_skill'),
  capability: z.string().regex(FILE_NAME).max(60),
  /** Required lead in votes among several answers to the same question; left out: one answer. */
  votes: whole(1, 3).optional(),
  /** Further values for the prompt, by name; templates. */
  with: json.default({}),
});

const toolStep = z.strictObject({
  ...step,
  kind: z.literal('tool'),
  tool: givenText(64),
  /** Templates. */
  arguments: json.default({}),
});

export const workflowSchema = z.strictObject({
  description: givenText(500),
  /** JSON Schema of each input; an input with `default` is optional. */
  inputs: z.record(name, json).default({}),
  steps: z
    .array(z.discriminatedUnion('kind', [skillStep, toolStep]))
    .min(1)
    .max(MAX_STEPS),
  /** Left out: complete when no step is left to do. */
  complete: conditionSchema.optional(),
  /** Template of the result text. */
  result: givenText(MAX_TEXT).optional(),
  limits: z
    .strictObject({
      steps: whole(1, 1000).optional(),
      minutes: whole(1, 1440).optional(),
      tokens: whole(100, 100_000_000).optional(),
      /** In the currency of the budgets. */
      money: z.number().positive().optional(),
    })
    .default({}),
});

export type Capability = Omit<Readonly<z.infer<typeof capabilitySchema>>, 'limits'> & {
  readonly name: string;
  readonly answerTokens: number;
  readonly tries: number;
};

type Told = { readonly label: string; readonly sets: string };
export type SkillStep = Readonly<z.infer<typeof skillStep>> & Told;
export type ToolStep = Readonly<z.infer<typeof toolStep>> & Told;
export type Step = SkillStep | ToolStep;

export type Workflow = Omit<Readonly<z.infer<typeof workflowSchema>>, 'steps'> & {
  readonly name: string;
  readonly steps: readonly Step[];
};
export type WorkflowLimits = Workflow['limits'];

/** All that a run needs: it keeps its definition, whatever happens to the files. */
export type Definition = {
  readonly workflow: Workflow;
  /** By name. */
  readonly capabilities: Readonly<Record<string, Capability>>;
};

// The inputs of a run: validated against the schemas, with defaults filled in. Text typed as
// key=value is converted to the type in the schema.

/** `problem` names the input and the expected value. */
const broken = (problem: string) => ({ kind: 'broken', problem }) as const;

const MAX_CHARS = 20_000;
const PAIR = /([A-Za-z0-9_]+)=("(?:[^"\\]|\\.)*"|\S*)/g;

export function readInputs({ inputs }: Workflow, given: JsonObject) {
  const defaults = Object.entries(inputs).flatMap(([name, schema]) =>
    schema.default === undefined ? [] : [[name, schema.default] as const],
  );
  const whole = { ...Object.fromEntries(defaults), ...given };
  if (JSON.stringify(whole).length > MAX_CHARS) {
    return broken(t`The inputs are longer than ${MAX_CHARS} characters.`);
  }
  const names = Object.keys(inputs);
  const unknown = Object.keys(whole).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const there = names.length === 0 ? t`it takes none` : t`it takes ${names.join(', ')}`;
    return broken(t`There is no input "${unknown}"; ${there}.`);
  }
  for (const [name, schema] of Object.entries(inputs)) {
    const value = Object.hasOwn(whole, name) ? whole[name] : undefined;
    if (value === undefined) return broken(t`The input "${name}" is missing${meaning(schema)}.`);
    const parsed = z.fromJSONSchema(schema).safeParse(value);
    if (!parsed.success) {
      const problem = parsed.error.issues[0]?.message ?? t`it does not fit`;
      return broken(t`The input "${name}" does not fit: ${problem}.`);
    }
  }
  return { kind: 'valid', input: whole } as const;
}

/** `typed`: `key=value key="two words"`; undefined where something else is in it. */
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

/** `typed`: the name of a workflow followed by its inputs. */
export function namedAs(typed: string): { readonly workflow: string; readonly input: string } {
  const [workflow = ''] = typed.trim().split(/\s+/, 1);
  return { workflow, input: typed.trim().slice(workflow.length).trim() };
}
