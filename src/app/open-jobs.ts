// The jobs of a home: for the gateway that runs them, and for a command beside it or without one.

import { randomBytes } from 'node:crypto';
import { JOBS_SCOPE, JobBook } from '../automation/job-book.ts';
import { createJobDesk } from '../automation/job-desk.ts';
import { createNextSlot } from '../automation/next-slot.ts';
import { WORKFLOWS_SCOPE, WorkflowBook } from '../automation/workflow-book.ts';
import { jobChat } from '../core/job.ts';
import { type ChatRef, sessionKeyOf } from '../core/message.ts';
import { JobError } from '../core/schedule.ts';
import { WorkflowError, workflowSession } from '../core/workflow.ts';
import type { JobDesk } from '../gateway/job-desk.ts';
import type { EmbeddedStore } from '../store/store.ts';
import { OWN_DOORS } from './own-doors.ts';

export function openJobs(
  store: Pick<EmbeddedStore, 'scope' | 'revision'>,
  bus: Pick<EmbeddedStore, 'cancel' | 'trace'>,
  parts: {
    now(): number;
    timeZone(): string;
    changed(): void;
    /** @throws WorkflowError */
    checkWorkflow(typed: string): Promise<void>;
  },
) {
  const { revision } = store;
  const book = new JobBook({ state: store.scope(JOBS_SCOPE), revision });
  const next = createNextSlot();
  const lasts = ({ channel }: ChatRef) =>
    !OWN_DOORS.some((door) => door.channel === channel && !door.lasts);
  const workflowsOf = async (job: string) => {
    const open = await new WorkflowBook(store.scope(WORKFLOWS_SCOPE), (text) => text).open();
    return open.flatMap(({ id, starter: { home } }) =>
      home.kind === 'job' && home.job === job ? [id] : [],
    );
  };
  const desk: JobDesk = createJobDesk({
    ...{ ...parts, book, next, randomBytes, lasts },
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
  return { book, next, desk };
}
