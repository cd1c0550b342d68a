// Workflows: declared steps from files of the workspace.

import type { Rights } from '../../kernel/access/rights.ts';
import type { CommandTable } from '../../kernel/commands/command-access.ts';
import { port } from '../../kernel/feature.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import type { SystemSender } from '../../kernel/message/message.ts';
import { t } from '../../lib/texts.ts';
import type { WorkflowService } from './workflow-people.ts';
import type { WorkflowRuns } from './workflow-runs.ts';

export {
  WORKFLOW_CHANNEL,
  WorkflowError,
  type WorkflowRun,
  workflowSession,
} from './rules/workflow.ts';
export type { WorkflowService } from './workflow-people.ts';

export type Workflows = {
  /** For commands. */
  readonly service: Pick<WorkflowService, 'all' | 'stopAll' | 'atWork'> & {
    /** As an owner; returns the answer for them. @throws WorkflowError */
    cancel(id: string): Promise<string>;
  };
  whenJobEnds: WorkflowRuns['whenJobEnds'];
  /** Starts the workflow that the job names. @throws WorkflowError */
  startForJob(
    run: { readonly job: { readonly id: string; readonly text: string }; readonly id: MessageId },
    sender: SystemSender & { readonly rights: Rights },
  ): Promise<void>;
  /** Checks what a new job would start. @throws WorkflowError */
  check(typed: string): Promise<void>;
  /** Ids of the runs that this job started and that have not ended. */
  ofJob(job: string): Promise<readonly string[]>;
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
