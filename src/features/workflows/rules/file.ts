// Parses the files of workflows and capabilities into a definition, or a problem that names field,
// value and remedy. References within a file are checked here too, so that a run does not fail half
// way at a typing error.

import { z } from 'zod';
import type { JsonObject } from '../../../kernel/config/json.ts';
import { mayBeTool } from '../../../kernel/config/limits.ts';
import { broken, eachIssue, pathOf, type ReadFile, shownValue } from '../../../lib/json/json.ts';
import { headOf } from '../../../lib/text/cut.ts';
import { t } from '../../../lib/texts.ts';
import {
  type Capability,
  capabilitySchema,
  type Definition,
  isFileName,
  MAX_STEPS,
  MAX_TEXT,
  type Step,
  type Workflow,
  workflowSchema,
} from './definition.ts';
import {
  type Condition,
  evaluated,
  INPUT,
  lookedAt,
  pathsIn,
  rootOf,
  templateFault,
  testsIn,
} from './template.ts';

const MAX_PROBLEM_CHARS = 200;
const MAX_DEPTH = 24;

/** By the last name of the field. */
const REMEDIES: Readonly<Record<string, string>> = {
  description: t`say in a sentence what it is for`,
  prompt: t`write what the model is to do, at most ${MAX_TEXT} characters`,
  output: t`write a JSON Schema of type object for the answer`,
  model: 'write main, fast or a name as /model takes it',
  inputs: t`write a JSON Schema for each name, like topic: {type: string}`,
  steps: t`write 1 to ${MAX_STEPS} steps`,
  kind: 'write llm_skill or tool',
  id: t`use small letters, digits and _, beginning with a letter, and not "input"`,
  sets: t`use small letters, digits and _, beginning with a letter, and not "input"`,
  capability: t`write the name of a file in capabilities/, without .yaml`,
  tool: t`write the name of a tool`,
  with: t`write names with values, which may hold {{ path }}`,
  arguments: t`write the arguments of the tool, which may hold {{ path }}`,
  when: t`write one of present, equals, done, failed, not, and, or`,
  complete: t`write one of present, equals, done, failed, not, and, or`,
  retries: t`write a whole number from 0 to 5`,
  runs: t`write a whole number from 1 to 50`,
  votes: t`write a whole number from 1 to 3`,
  onFailure: t`write stop or continue`,
  tries: t`write a whole number from 1 to 5`,
  tokens: t`write a whole number`,
  minutes: t`write a whole number from 1 to 1440`,
  money: t`write a number above 0`,
  limits: t`a workflow may limit steps, minutes, tokens and money; a capability tokens and tries`,
  result: t`write a text, which may hold {{ path }}`,
};
const OF_WORKFLOW = t`it may hold ${Object.keys(workflowSchema.shape).join(', ')}`;
const OF_CAPABILITY = t`it may hold ${Object.keys(capabilitySchema.shape).join(', ')}`;

export function readCapability(values: unknown, called: string): ReadFile<Capability> {
  const read = checked(capabilitySchema, values, called, OF_CAPABILITY);
  if (read.kind === 'broken') return read;
  const { limits, ...rest } = read.value;
  const fault = templateFault(rest.prompt);
  if (fault !== undefined) return broken(called, t`prompt: ${fault}`);
  const problem = schemaProblem(rest.output);
  if (problem !== undefined) return broken(called, t`output: ${problem}; ${REMEDIES['output']}`);
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
    return error instanceof Error ? headOf(error.message, MAX_PROBLEM_CHARS) : t`it does not fit`;
  }
}

function checked<T>(
  schema: z.ZodType<T>,
  values: unknown,
  called: string,
  fields: string,
): ReadFile<T> {
  if (!isFileName(called)) {
    return broken(called, t`the name of the file: use small letters, digits and single hyphens`);
  }
  if (isTooDeep(values))
    return broken(called, t`the file: nested deeper than ${MAX_DEPTH}; make it flatter`);
  const parsed = schema.safeParse(values);
  if (parsed.success) return { kind: 'valid', value: parsed.data };
  return broken(called, ...eachIssue(parsed.error).map((each) => told(each, values, fields)));
}

function told(issue: z.core.$ZodIssue, values: unknown, fields: string): string {
  const path = pathOf(issue);
  const field = path.map((part) => (typeof part === 'number' ? part + 1 : String(part))).join('.');
  if (issue.code === 'unrecognized_keys' && path.length > 1) {
    return t`${field}: unknown field; remove it or correct its name`;
  }
  const last = path.findLast((part) => typeof part === 'string' && Object.hasOwn(REMEDIES, part));
  const known = issue.code === 'unrecognized_keys' ? undefined : REMEDIES[String(last)];
  return `${field || t`the file`}: ${shownValue(values, path)}; ${known ?? fields}`;
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

// Checks references of a workflow: values in templates and conditions, steps, and capabilities with
// the values their prompts need.

type Template = Parameters<typeof pathsIn>[0];

/** Tools that start sessions, or speak where no person is. */
const NO_STEPS = [
  'workflow',
  'spawn',
  'cron',
  'message',
  'ask_user',
  'plan',
  'checkpoint',
  'backtrack',
];

export const isStepTool = (tool: string) => !NO_STEPS.includes(tool);

/** Undefined where all references are valid. */
export function definitionProblem({ workflow, capabilities }: Definition): string | undefined {
  const known = knownNames(workflow);
  for (const [index, each] of workflow.steps.entries()) {
    if (each.kind !== 'llm_skill') continue;
    const field = `steps.${index + 1}.capability`;
    const capability = Object.hasOwn(capabilities, each.capability)
      ? capabilities[each.capability]
      : undefined;
    if (capability === undefined) {
      return t`${field}: there is no capability ${JSON.stringify(each.capability)}; write the name of a file in capabilities/, without .yaml`;
    }
    const given = [...Object.keys(each.with), ...known];
    const unknown = pathsIn(capability.prompt).find((path) => !given.includes(rootOf(path)));
    if (unknown !== undefined) {
      return t`${field}: its prompt asks for {{ ${unknown} }}, which nothing sets; set it in "with"`;
    }
  }
  return undefined;
}

/** Empty where every referenced name is defined; otherwise at most one problem per step. */
function namesProblems(workflow: Workflow): readonly string[] {
  const { steps, complete, result } = workflow;
  const names = { known: knownNames(workflow), ids: steps.map(({ id }) => id) };
  const found = [
    ...steps.map((step, index) => stepProblem(step, index, names)),
    conditionProblem('complete', complete, names),
    templateProblem('result', result ?? '', names),
  ].filter((problem) => problem !== undefined);
  return found.length > 0 ? found : neverBegunProblems(steps);
}

function neverBegunProblems(steps: Workflow['steps']): readonly string[] {
  const never = stepsNeverBegun(steps);
  return steps.flatMap(({ id }, index) =>
    never.includes(id)
      ? [
          t`steps.${index + 1}.when: "${id}" can never begin, as what it waits for only comes behind it; let it wait for an earlier step or for input`,
        ]
      : [],
  );
}

type Names = { readonly known: readonly string[]; readonly ids: readonly string[] };

function stepProblem(step: Step, index: number, names: Names): string | undefined {
  const field = `steps.${index + 1}`;
  if (names.ids.indexOf(step.id) < index) {
    return t`${field}.id: "${step.id}" is used twice; rename one`;
  }
  if (step.kind === 'tool' && !isStepTool(step.tool)) {
    return t`${field}.tool: "${step.tool}" cannot be a step; take another tool, or "say" to tell something`;
  }
  if (step.kind === 'tool' && !mayBeTool(step.tool)) {
    return t`${field}.tool: there is no tool ${JSON.stringify(step.tool)}; write one that is built in, like read_file, or mcp_<server>_<tool>`;
  }
  const [key, template] =
    step.kind === 'tool' ? ['arguments', step.arguments] : ['with', step.with];
  return (
    templateProblem(`${field}.${key}`, template, names) ??
    templateProblem(`${field}.say`, step.say ?? '', names) ??
    conditionProblem(`${field}.when`, step.when, names)
  );
}

function templateProblem(field: string, template: Template, names: Names): string | undefined {
  const fault = templateFault(template);
  if (fault !== undefined) return t`${field}: ${fault}`;
  const unknown = pathsIn(template).find((path) => !names.known.includes(rootOf(path)));
  return unknown === undefined ? undefined : `${field}: {{ ${unknown} }} ${unset(names)}`;
}

function conditionProblem(
  field: string,
  condition: Condition | undefined,
  { known, ids }: Names,
): string | undefined {
  const looked = condition === undefined ? [] : testsIn(condition).map(lookedAt);
  const root = looked.flatMap(({ path }) => (path === undefined ? [] : rootOf(path)));
  const unknown = root.find((each) => !known.includes(each));
  if (unknown !== undefined) return `${field}: "${unknown}" ${unset({ known, ids })}`;
  const id = looked.flatMap(({ step }) => step ?? []).find((each) => !ids.includes(each));
  return id === undefined
    ? undefined
    : t`${field}: there is no step "${id}"; there is ${ids.join(', ')}`;
}

const unset = ({ known }: Names) => t`is set by nothing; there is ${known.join(', ')}`;

const knownNames = ({ steps }: Workflow) => [INPUT, ...new Set(steps.map(({ sets }) => sets))];

// Finds steps that can never start: those that wait for one another, or for a value that only they
// set. A condition that may hold in some run counts as holding, so that no step is reported
// wrongly.

/** Their ids, in the order of the file. */
function stepsNeverBegun(steps: readonly Step[]): readonly string[] {
  let begun: readonly Step[] = [];
  for (;;) {
    const next = steps.filter(({ when }) => when === undefined || mayHold(when, begun));
    if (next.length === begun.length) break;
    begun = next;
  }
  return steps.filter((step) => !begun.includes(step)).map(({ id }) => id);
}

/** Whether it may hold after these steps were done, or failed. */
const mayHold = (condition: Condition, begun: readonly Step[]) =>
  evaluated(
    condition,
    (test) => {
      const { path = '', step } = lookedAt(test);
      if (step !== undefined) return begun.some(({ id }) => id === step);
      return rootOf(path) === INPUT || begun.some(({ sets }) => sets === rootOf(path));
    },
    () => true,
  );
