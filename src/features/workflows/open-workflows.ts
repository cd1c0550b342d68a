// Opens the workflows of a home and their runs for a command beside the gateway. Stored runs
// contain no secrets.

import type { Config } from '../../kernel/config/config.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { WORKFLOWS_OFF } from './index.ts';
import { inspected, WorkflowError, type WorkflowRun, workflowLine } from './rules/workflow.ts';
import { definitionLine } from './workflow-people.ts';
import { openWorkflowRows } from './workflow-rows.ts';
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

export async function openWorkflowRuns(rows: OpenRows, clock: Clock) {
  const runs = await openWorkflowRows(rows, (text) => text).runs.list();
  return {
    runs: runs.map(inspected),
    lines: runs.map((run) => ({ text: workflowLine(run, clock.now()), ...placeOf(run) })),
  };
}

function placeOf({ starter: { home } }: WorkflowRun): ShownRun {
  return home.kind === 'chat' ? { session: home.session } : { job: home.job };
}

/** Where it was started. */
type ShownRun = { readonly session: SessionKey } | { readonly job: string };
