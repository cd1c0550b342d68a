// The workflows and capabilities in the workspace, read anew each time they are asked for, so that a
// change counts from the next start on.

import { declaredPaths, readDeclared } from '../../lib/files/declared-files.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { broken, type ReadFile } from '../../lib/json/value-problem.ts';
import {
  CAPABILITIES_FOLDER,
  type Capability,
  type Definition,
  isFileName,
  WORKFLOWS_FOLDER,
} from './rules/definition.ts';
import { definitionProblem, readCapability, readWorkflow } from './rules/file.ts';

export type WorkflowFiles = {
  /** By name. A workflow is broken as well where a capability of its is. */
  workflows(): Promise<readonly ReadFile<Definition>[]>;
  /** Undefined where there is none of this name. */
  workflow(name: string): Promise<ReadFile<Definition> | undefined>;
  capabilities(): Promise<readonly ReadFile<Capability>[]>;
};

export function createWorkflowFiles(files: GuardedFiles, workspace: () => string): WorkflowFiles {
  const paths = (folder: string) => declaredPaths(files, workspace(), folder);
  const capabilityAt = (name: string, path: string) =>
    readDeclared(files, { root: workspace(), path, name }, readCapability);

  async function workflowAt(name: string, path: string): Promise<ReadFile<Definition>> {
    const found = await readDeclared(files, { root: workspace(), path, name }, readWorkflow);
    if (found.kind === 'broken') return found;
    const workflow = found.value;
    const capabilities: Record<string, Capability> = {};
    const there = await paths(CAPABILITIES_FOLDER);
    for (const step of workflow.steps) {
      const at = step.kind === 'llm_skill' ? there.get(step.capability) : undefined;
      if (step.kind !== 'llm_skill' || at === undefined) continue;
      const capability = await capabilityAt(step.capability, at);
      if (capability.kind === 'broken') return { ...capability, name };
      capabilities[step.capability] = capability.value;
    }
    const value = { workflow, capabilities };
    const problem = definitionProblem(value);
    return problem === undefined ? { kind: 'valid', value } : broken(name, `${path}: ${problem}`);
  }

  const all = async <T>(folder: string, read: (name: string, path: string) => Promise<T>) =>
    Promise.all([...(await paths(folder))].map(([name, path]) => read(name, path)));

  return {
    workflows: () => all(WORKFLOWS_FOLDER, workflowAt),
    async workflow(name) {
      const path = isFileName(name) ? (await paths(WORKFLOWS_FOLDER)).get(name) : undefined;
      return path === undefined ? undefined : workflowAt(name, path);
    },
    capabilities: () => all(CAPABILITIES_FOLDER, capabilityAt),
  };
}
