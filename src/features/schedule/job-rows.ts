// The collections of scheduled jobs: the jobs, and after a job was removed who made it, as long as its
// conversation is on disk.

import { jsonRows, type OpenRows, type Rows } from '../../kernel/rows.ts';
import { flag, kind, number, object, rowShape, text } from '../../lib/json/json.ts';
import type { Job } from './rules/job.ts';

type RemovedJob = Pick<Job, 'id' | 'maker'>;

export type JobRows = {
  /** Oldest first. */
  readonly all: Rows<Job>;
  readonly removed: Rows<RemovedJob>;
};

const JOB = rowShape<Job>({
  ...{ id: text, name: text, kind: text, text, schedule: kind, target: object, maker: object },
  ...{ enabled: flag, deleteAfterRun: flag, createdAt: number, failures: number },
});
const REMOVED = rowShape<RemovedJob>({ id: text, maker: object });
const SCOPE = 'jobs';

export const openJobRows = (rows: OpenRows): JobRows => ({
  all: rows({
    ...jsonRows(JOB),
    ...{ scope: SCOPE, prefix: 'job:', isCached: true },
    order: (one, other) => one.createdAt - other.createdAt,
  }),
  removed: rows({ ...jsonRows(REMOVED), scope: SCOPE, prefix: 'gone:' }),
});

export async function removeJob({ all, removed }: JobRows, id: string): Promise<void> {
  await all.change(
    id,
    () => 'remove',
    ({ maker }) => [removed.write(id, { id, maker })],
  );
}
