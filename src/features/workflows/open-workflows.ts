// Opens the workflows of a home for a command beside the gateway.

import type { Config } from '../../kernel/config/config.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import { t } from '../../lib/texts.ts';
import { WORKFLOWS_OFF } from './index.ts';
import { WorkflowError } from './rules/workflow.ts';
import { definitionLine } from './workflow-people.ts';
import { checkTyped, createWorkflowFiles } from './workflow-runs.ts';

export async function openWorkflowFiles(home: Home, workspace: string) {
  const files = workflowFiles(home, workspace);
  const [workflows, capabilities] = await Promise.all([files.workflows(), files.capabilities()]);
  const others = capabilities.map((each) =>
    each.kind === 'valid'
      ? t`capability ${each.value.name}: ${each.value.description}`
      : t`capability ${each.name} cannot be used: ${each.problem}`,
  );
  const own = workflows.map((each) => t`workflow ${definitionLine(each)}`);
  return { workflows, capabilities, lines: [...own, ...others] };
}

/** For a job that starts a workflow. @throws WorkflowError where it could not run now */
export async function checkWorkflowOf(home: Home, { agents }: Config, typed: string) {
  const files = workflowFiles(home, agents.defaults.workspace);
  if (agents.workflows.enabled === false) throw new WorkflowError(WORKFLOWS_OFF);
  await checkTyped(files, typed);
}

function workflowFiles(home: Home, workspace: string) {
  return createWorkflowFiles(createGuardedFiles({ forbidden: [home.root] }), () => workspace);
}
