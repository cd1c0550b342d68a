// The jobs of a home: for the gateway that runs them, and for a command beside it or without one.

import { randomBytes } from 'node:crypto';
import { OWN_DOORS } from '../../channels/door.ts';
import type { EmbeddedStore } from '../../kernel/bus/store/store.ts';
import { type ChatRef, sessionKeyOf } from '../../kernel/message/message.ts';
import { WorkflowError, workflowSession } from '../workflows/rules/workflow.ts';
import { openRuns, type WorkflowRows } from '../workflows/workflow-rows.ts';
import type { JobDesk } from './job-askers.ts';
import type { JobRows } from './job-rows.ts';
import { createJobDesk, createNextSlot } from './jobs.ts';
import { jobChat } from './rules/job.ts';
import { JobError } from './rules/schedule.ts';

export function openJobs(
  { jobs, workflows }: { readonly jobs: JobRows; readonly workflows: WorkflowRows },
  bus: Pick<EmbeddedStore, 'cancel' | 'trace'>,
  parts: {
    now(): number;
    timeZone(): string;
    changed(): void;
    /** @throws WorkflowError */
    checkWorkflow(typed: string): Promise<void>;
  },
) {
  const next = createNextSlot();
  const lasts = ({ channel }: ChatRef) =>
    !OWN_DOORS.some((door) => door.channel === channel && !door.lasts);
  const workflowsOf = async (job: string) => {
    return (await openRuns(workflows)).flatMap(({ id, starter: { home } }) =>
      home.kind === 'job' && home.job === job ? [id] : [],
    );
  };
  const desk: JobDesk = createJobDesk({
    ...{ ...parts, jobs, next, randomBytes, lasts },
    async checkWorkflow(typed) {
      try {
        await parts.checkWorkflow(typed);
      } catch (error) {
        if (error instanceof WorkflowError) throw new JobError(error.message);
        throw error;
      }
    },
    isPending: async (id) => (await bus.trace(id))?.state === 'pending',
    hasWorkflow: async (id) => (await workflowsOf(id)).length > 0,
    async stop(id) {
      await bus.cancel(sessionKeyOf(jobChat(id)), 'the job was stopped');
      for (const run of await workflowsOf(id)) {
        await bus.cancel(workflowSession(run), 'the job was stopped');
      }
    },
  });
  return { next, desk };
}
