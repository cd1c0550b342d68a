// What a run of a workflow is asked to be, held against the files in the workspace: which workflow, given
// what. Says what is wrong before anything is begun or promised.

import type { JsonObject } from '../../kernel/config/json.ts';
import type { Definition, Workflow } from './rules/definition.ts';
import { namedAs, readInputs, typedInputs } from './rules/inputs.ts';
import { WorkflowError } from './rules/workflow.ts';
import type { WorkflowFiles } from './workflow-files.ts';

/** `input`: by name, or as somebody typed it. */
export type WorkflowWish = {
  readonly workflow: string;
  readonly input: JsonObject | string;
};

export type ReadWish = { readonly definition: Definition; readonly input: JsonObject };

/** @throws WorkflowError */
export function demandEnabled(enabled: boolean): void {
  if (enabled) return;
  throw new WorkflowError('Workflows are switched off (agents.workflows.enabled).');
}

/** @throws WorkflowError with the names there are */
export async function readWish(
  files: WorkflowFiles,
  { workflow, input }: WorkflowWish,
): Promise<ReadWish> {
  const definition = await definitionOf(files, workflow);
  return { definition, input: inputOf(input, definition.workflow) };
}

/**
 * A job that is to run one: the name with its inputs behind it.
 * @throws WorkflowError where it could not run now
 */
export async function checkTyped(
  files: WorkflowFiles,
  enabled: boolean,
  typed: string,
): Promise<void> {
  demandEnabled(enabled);
  await readWish(files, namedAs(typed));
}

async function definitionOf(files: WorkflowFiles, name: string): Promise<Definition> {
  const found = await files.workflow(name);
  if (found?.kind === 'valid') return found.value;
  if (found !== undefined) {
    throw new WorkflowError(`The workflow ${name} cannot be used: ${found.problem}.`);
  }
  const all = await files.workflows();
  const names = all.map((each) => (each.kind === 'valid' ? each.value.workflow : each).name);
  const there = names.length === 0 ? 'there are none' : `there is ${names.join(', ')}`;
  throw new WorkflowError(`There is no workflow "${name}"; ${there}.`);
}

function inputOf(input: JsonObject | string, workflow: Workflow): JsonObject {
  const given = typeof input === 'string' ? typedInputs(workflow, input) : input;
  if (given === undefined) {
    throw new WorkflowError(
      'Write inputs as key=value, and key="two words" where there are blanks.',
    );
  }
  const read = readInputs(workflow, given);
  if (read.kind === 'broken') throw new WorkflowError(read.problem);
  return read.input;
}
