// Reads the files of workflows and capabilities: what YAML says becomes a definition, or a problem that
// names field, value and remedy. What a file names is checked here as well, so that a run does not find
// out half way that a step was mistyped.

import { z } from 'zod';
import type { JsonObject } from '../../../kernel/config/json.ts';
import {
  broken,
  eachIssue,
  pathOf,
  type ReadFile,
  shownValue,
} from '../../../lib/json/value-problem.ts';
import { headOf } from '../../../lib/text/cut.ts';
import { namesProblems, placeholderProblem } from './check.ts';
import {
  type Capability,
  capabilitySchema,
  isFileName,
  MAX_STEPS,
  MAX_TEXT,
  type Workflow,
  workflowSchema,
} from './definition.ts';
import { badPlaceholder } from './template.ts';

const MAX_PROBLEM_CHARS = 200;
const MAX_DEPTH = 24;

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
  const steps = read.value.steps.map((step) => {
    const { label = step.id, sets = step.id } = step;
    return { ...step, label, sets };
  });
  const workflow = { ...read.value, name: called, steps };
  const problems = [...namesProblems(workflow), ...inputsProblems(workflow)];
  return problems.length === 0 ? { kind: 'valid', value: workflow } : broken(called, ...problems);
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
  return broken(called, ...eachIssue(parsed.error).map((each) => told(each, values, fields)));
}

function told(issue: z.core.$ZodIssue, values: unknown, fields: string): string {
  const path = pathOf(issue);
  const field = path.map((part) => (typeof part === 'number' ? part + 1 : String(part))).join('.');
  if (issue.code === 'unrecognized_keys' && path.length > 1) {
    return `${field}: it is no field here; take it away or correct its name`;
  }
  const last = path.findLast((part) => typeof part === 'string' && Object.hasOwn(REMEDIES, part));
  const known = issue.code === 'unrecognized_keys' ? undefined : REMEDIES[String(last)];
  return `${field || 'the file'}: ${shownValue(values, path)}; ${known ?? fields}`;
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
