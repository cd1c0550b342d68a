// Workflows: declared steps from files of the workspace.

import type { CommandTable } from '../../kernel/commands/command-access.ts';
import { port } from '../../kernel/feature.ts';
import { t } from '../../lib/texts.ts';
import type { Work } from './work.ts';
import type { WorkflowService } from './workflow-people.ts';
import type { JobEnded } from './workflow-runs.ts';

export {
  WORKFLOW_CHANNEL,
  WorkflowError,
  type WorkflowRun,
  workflowSession,
} from './rules/workflow.ts';

export type Workflows = Pick<Work, 'startForJob' | 'check' | 'ofJob'> & {
  /** Schedules register here what an end means for the job that started the run. */
  whenJobEnds(ended: JobEnded): void;
  /** For commands. */
  readonly service: Pick<WorkflowService, 'all' | 'stopAll' | 'atWork'> & {
    /** As an owner; returns the answer for them. @throws WorkflowError */
    cancel(id: string): Promise<string>;
  };
};

export const WORKFLOWS = port<Workflows>('workflows');

export const WORKFLOWS_OFF = t`Workflows are switched off (agents.workflows.enabled).`;

export const WORKFLOW_COMMANDS = {
  workflow: {
    summary: t`run workflows and show their progress`,
    usage: '/workflow [list | run <name> key=value | runs | show <name or id> | cancel <id>]',
    access: { direct: 'trusted', group: 'nobody', audited: true },
    timing: 'immediate',
    isRepeatable: true,
  },
} satisfies CommandTable;
