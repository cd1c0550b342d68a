// The collection of scheduled jobs.

import type { OpenRows } from '../../kernel/rows.ts';
import { openWork } from '../../kernel/work-rows.ts';
import { flag, kind, number, object, rowShape, text } from '../../lib/json/json.ts';
import type { Job } from './rules/job.ts';

const JOB = rowShape<Job>({
  ...{ id: text, name: text, kind: text, text, schedule: kind, target: object, maker: object },
  ...{ enabled: flag, deleteAfterRun: flag, createdAt: number, failures: number },
});

export type JobRows = ReturnType<typeof openJobRows>;

/** Oldest first. */
export const openJobRows = (rows: OpenRows) =>
  openWork(rows, {
    shape: JOB,
    left: rowShape<Pick<Job, 'id' | 'maker'>>({ id: text, maker: object }),
    leaves: ({ id, maker }) => ({ id, maker }),
    ...{ scope: 'jobs', prefix: 'job:', isCached: true },
    order: (one, other) => one.createdAt - other.createdAt,
  });
