// Where a test is not about jobs: there are none, and nobody may make one.

import type { Schedules } from '../../src/features/schedule/cron-tool.ts';
import { JobError } from '../../src/features/schedule/rules/schedule.ts';
import type { JobDesk } from '../../src/features/schedule/schedules.ts';

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
