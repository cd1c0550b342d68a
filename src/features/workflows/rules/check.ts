// Whether what the file of a workflow names is there: values that templates and conditions ask for,
// steps, and capabilities with what their prompts want to know.

import { mayBeTool } from '../../../agent/rules/tool-room.ts';
import { headOf } from '../../../lib/text/cut.ts';
import { type Condition, evaluated, lookedAt, testsIn } from './condition.ts';
import type { Definition, Step, Workflow } from './definition.ts';
import { badPlaceholder, INPUT, pathsIn, rootOf } from './template.ts';

type Template = Parameters<typeof pathsIn>[0];

const MAX_SHOWN_CHARS = 60;
/** Tools that begin conversations, or speak in one where nobody is. */
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

export const placeholderProblem = (field: string, inner: string) =>
  `${field}: {{ ${headOf(inner, MAX_SHOWN_CHARS)} }} is no path; write names with dots, like {{ input.topic }}`;

/** Undefined where all fits together. */
export function definitionProblem({ workflow, capabilities }: Definition): string | undefined {
  const known = knownNames(workflow);
  for (const [index, each] of workflow.steps.entries()) {
    if (each.kind !== 'llm_skill') continue;
    const field = `steps.${index + 1}.capability`;
    const capability = Object.hasOwn(capabilities, each.capability)
      ? capabilities[each.capability]
      : undefined;
    if (capability === undefined) {
      return `${field}: there is no capability ${JSON.stringify(each.capability)}; write the name of a file in capabilities/, without .yaml`;
    }
    const given = [...Object.keys(each.with), ...known];
    const unknown = pathsIn(capability.prompt).find((path) => !given.includes(rootOf(path)));
    if (unknown !== undefined) {
      return `${field}: its prompt asks for {{ ${unknown} }}, which nothing sets; hand it over in "with"`;
    }
  }
  return undefined;
}

/** Empty where every name that the file uses is set by something in it; else one a step at most. */
export function namesProblems(workflow: Workflow): readonly string[] {
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
          `steps.${index + 1}.when: "${id}" can never begin, as what it waits for only comes behind it; let it wait for an earlier step or for input`,
        ]
      : [],
  );
}

type Names = { readonly known: readonly string[]; readonly ids: readonly string[] };

function stepProblem(step: Step, index: number, names: Names): string | undefined {
  const field = `steps.${index + 1}`;
  if (names.ids.indexOf(step.id) < index) {
    return `${field}.id: "${step.id}" is there twice; name it otherwise`;
  }
  if (step.kind === 'tool' && !isStepTool(step.tool)) {
    return `${field}.tool: "${step.tool}" cannot be a step; take another tool, or "say" to tell something`;
  }
  if (step.kind === 'tool' && !mayBeTool(step.tool)) {
    return `${field}.tool: there is no tool ${JSON.stringify(step.tool)}; write one that is built in, like read_file, or mcp_<server>_<tool>`;
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
  const bad = badPlaceholder(template);
  if (bad !== undefined) return placeholderProblem(field, bad);
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
    : `${field}: there is no step "${id}"; there is ${ids.join(', ')}`;
}

const unset = ({ known }: Names) => `is set by nothing; there is ${known.join(', ')}`;

const knownNames = ({ steps }: Workflow) => [INPUT, ...new Set(steps.map(({ sets }) => sets))];

// Which steps of a workflow can never begin: those that wait for one another, or for a value that only
// they would set. What could hold in some run counts as holding, so that no step is blamed that can begin.

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

/** Whether it may come to hold where these steps were done, or failed. */
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
