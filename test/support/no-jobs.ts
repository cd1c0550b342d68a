// Where a test is not about jobs: there are none, and nobody may make one.

import { JobError } from '../../src/core/schedule.ts';
import type { JobDesk } from '../../src/gateway/job-desk.ts';
import type { Schedules } from '../../src/tools/cron.ts';

const refused = () => Promise.reject(new JobError('Nobody makes jobs here.'));

export const noSchedules = (): Schedules => ({
  ...{ add: refused, check: refused },
  list: async () => 'There are no jobs.',
  change: refused,
});

const desk: JobDesk = {
  list: async () => [],
  atWork: async () => [],
  endRun: async () => false,
  find: refused,
  ...{ add: refused, check: refused, remove: refused, setEnabled: refused, runNow: refused },
};

export const noJobs = () => ({ desk, askerOf: async () => undefined });
