// Reads the files of workflows and capabilities: what YAML says becomes a definition, or a problem that
// names field, value and remedy. What a file names is checked here as well, so that a run does not find
// out half way that a step was mistyped.

import { z } from 'zod';
import type { JsonObject } from '../../../kernel/config/json.ts';
import { eachIssue } from '../../../lib/json/value-problem.ts';
import { headOf } from '../../../lib/text/cut.ts';
import { namesProblems, placeholderProblem } from './check.ts';
import { conditionSchema } from './condition.ts';
import type { Capability, Step, Workflow } from './definition.ts';
import { STEP_NAME } from './path.ts';
import { INPUT } from './state.ts';
import { badPlaceholder } from './template.ts';

/** Where a file is there twice, the first counts. */
export const WORKFLOW_ENDINGS = ['.yaml', '.yml'] as const;

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

const FILE_NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const MAX_TEXT = 20_000;
const MAX_STEPS = 50;
const MAX_VALUE_CHARS = 60;
const MAX_PROBLEM_CHARS = 200;
const MAX_DEPTH = 24;

const text = (most: number) => z.string().trim().min(1).max(most);
const name = z.string().regex(STEP_NAME).max(40);
const fileName = z.string().regex(FILE_NAME).max(60);
const json = z.record(z.string(), z.json());

const capabilitySchema = z.strictObject({
  description: text(500),
  prompt: text(MAX_TEXT),
  output: json,
  model: text(200).default('main'),
  limits: z
    .strictObject({
      tokens: z.int().min(16).max(100_000).default(2000),
      tries: z.int().min(1).max(5).default(3),
    })
    .prefault({}),
});

const step = {
  id: name.refine((id) => id !== INPUT),
  label: text(80).optional(),
  when: conditionSchema.optional(),
  sets: name.refine((id) => id !== INPUT).optional(),
  retries: z.int().min(0).max(5).default(0),
  onFailure: z.enum(['stop', 'continue']).default('stop'),
  runs: z.int().min(1).max(50).default(1),
  say: text(500).optional(),
};

const workflowSchema = z.strictObject({
  description: text(500),
  inputs: z.record(name, json).default({}),
  steps: z
    .array(
      z.discriminatedUnion('kind', [
        z.strictObject({
          ...step,
          kind: z.literal('llm_skill'),
          capability: fileName,
          votes: z.int().min(1).max(3).optional(),
          with: json.default({}),
        }),
        z.strictObject({
          ...step,
          kind: z.literal('tool'),
          tool: text(64),
          arguments: json.default({}),
        }),
      ]),
    )
    .min(1)
    .max(MAX_STEPS),
  complete: conditionSchema.optional(),
  result: text(MAX_TEXT).optional(),
  limits: z
    .strictObject({
      steps: z.int().min(1).max(1000).optional(),
      minutes: z.int().min(1).max(1440).optional(),
      tokens: z.int().min(100).max(100_000_000).optional(),
      money: z.number().positive().optional(),
    })
    .default({}),
});

/** By the last name of the field. */
const REMEDIES: Readonly<Record<string, string>> = {
  description: 'say in a sentence what it is for',
  prompt: `write what the model is to do, at most ${MAX_TEXT} characters`,
  output: 'write a JSON Schema of type object for the answer',
  model: 'write main, fast or a name as /model takes it',
  inputs: 'write a JSON Schema for each name, like topic: {type: string}',
  steps: `write 1 to ${MAX_STEPS} steps`,
  kind: 'write llm_skill or tool',
  id: 'use small letters, digits and _, beginning with a letter, and not "input"',
  sets: 'use small letters, digits and _, beginning with a letter, and not "input"',
  capability: 'write the name of a file in capabilities/, without .yaml',
  tool: 'write the name of a tool',
  with: 'write names with values, which may hold {{ path }}',
  arguments: 'write the arguments of the tool, which may hold {{ path }}',
  when: 'write one of present, equals, done, failed, not, and, or',
  complete: 'write one of present, equals, done, failed, not, and, or',
  retries: 'write a whole number from 0 to 5',
  runs: 'write a whole number from 1 to 50',
  votes: 'write a whole number from 1 to 3',
  onFailure: 'write stop or continue',
  tries: 'write a whole number from 1 to 5',
  tokens: 'write a whole number',
  minutes: 'write a whole number from 1 to 1440',
  money: 'write a number above 0',
  limits: 'a workflow may limit steps, minutes, tokens and money; a capability tokens and tries',
  result: 'write a text, which may hold {{ path }}',
};
const OF_WORKFLOW = `it may hold ${Object.keys(workflowSchema.shape).join(', ')}`;
const OF_CAPABILITY = `it may hold ${Object.keys(capabilitySchema.shape).join(', ')}`;

export const isFileName = (typed: string) => FILE_NAME.test(typed) && typed.length <= 60;

export function readCapability(values: unknown, called: string): ReadFile<Capability> {
  const read = checked(capabilitySchema, values, called, OF_CAPABILITY);
  if (read.kind === 'broken') return read;
  const { limits, ...rest } = read.value;
  const bad = badPlaceholder(rest.prompt);
  if (bad !== undefined) return broken(called, placeholderProblem('prompt', bad));
  const problem = schemaProblem(rest.output);
  if (problem !== undefined) return broken(called, `output: ${problem}; ${REMEDIES['output']}`);
  const value = { ...rest, name: called, answerTokens: limits.tokens, tries: limits.tries };
  return { kind: 'valid', value };
}

export function readWorkflow(values: unknown, called: string): ReadFile<Workflow> {
  const read = checked(workflowSchema, values, called, OF_WORKFLOW);
  if (read.kind === 'broken') return read;
  const { steps, ...rest } = read.value;
  const made = steps.map((each): Step => {
    const { label = each.id, sets = each.id } = each;
    return withoutUndefined({ ...each, label, sets }) as Step;
  });
  const [first, ...more] = made;
  if (first === undefined) return broken(called, `steps: it is missing; ${REMEDIES['steps']}`);
  const workflow = withoutUndefined({ ...rest, name: called, steps: [first, ...more] }) as Workflow;
  const [problem, ...others] = [...namesProblems(workflow), ...inputsProblems(workflow)];
  if (problem === undefined) return { kind: 'valid', value: workflow };
  return { ...broken(called, problem), more: others };
}

function inputsProblems({ inputs }: Workflow): readonly string[] {
  return Object.entries(inputs).flatMap(([input, schema]) => {
    const problem = schemaProblem(schema);
    return problem === undefined ? [] : [`inputs.${input}: ${problem}; ${REMEDIES['inputs']}`];
  });
}

function schemaProblem(schema: JsonObject): string | undefined {
  try {
    z.fromJSONSchema(schema);
    return undefined;
  } catch (error) {
    return error instanceof Error ? headOf(error.message, MAX_PROBLEM_CHARS) : 'it does not fit';
  }
}

function checked<T>(
  schema: z.ZodType<T>,
  values: unknown,
  called: string,
  fields: string,
): ReadFile<T> {
  if (!isFileName(called)) {
    return broken(called, 'the name of the file: use small letters, digits and single hyphens');
  }
  if (isTooDeep(values))
    return broken(called, `the file: nested deeper than ${MAX_DEPTH}; make it flatter`);
  const parsed = schema.safeParse(values);
  if (parsed.success) return { kind: 'valid', value: parsed.data };
  const [problem = '', ...more] = eachIssue(parsed.error).map((each) => told(each, values, fields));
  return { ...broken(called, problem), more };
}

function told(issue: z.core.$ZodIssue, values: unknown, fields: string): string {
  const path =
    issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : issue.path;
  const field = path.map((part) => (typeof part === 'number' ? part + 1 : String(part))).join('.');
  const last = path.findLast((part) => typeof part === 'string' && Object.hasOwn(REMEDIES, part));
  const isUnknown = issue.code === 'unrecognized_keys';
  const known = last === undefined ? fields : REMEDIES[String(last)];
  const remedy = !isUnknown ? known : path.length > 1 ? 'take it away or correct its name' : fields;
  const own = isUnknown && path.length > 1 ? 'it is no field here' : shownValue(values, path);
  return `${field === '' ? 'the file' : field}: ${own}; ${remedy}`;
}

function shownValue(values: unknown, path: readonly PropertyKey[]): string {
  const value = path.reduce<unknown>(
    (inner, part) =>
      typeof inner === 'object' && inner !== null
        ? (inner as Readonly<Record<PropertyKey, unknown>>)[part]
        : undefined,
    values,
  );
  if (value === undefined) return 'it is missing';
  return `${headOf(JSON.stringify(value), MAX_VALUE_CHARS)} does not fit`;
}

function isTooDeep(values: unknown): boolean {
  let level: readonly unknown[] = [values];
  for (let depth = 0; depth <= MAX_DEPTH; depth += 1) {
    level = level.flatMap((each) =>
      typeof each === 'object' && each !== null ? Object.values(each) : [],
    );
    if (level.length === 0) return false;
  }
  return true;
}

const broken = (called: string, problem: string) =>
  ({ kind: 'broken', name: called, problem }) as const;

const withoutUndefined = (value: object): object =>
  Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
