// Where a test is not about jobs: there are none, and nobody may make one.

import type { Schedules } from '../../src/features/schedule/cron-tool.ts';
import { JobError } from '../../src/features/schedule/rules/schedule.ts';

const refused = () => Promise.reject(new JobError('Nobody makes jobs here.'));

export const noSchedules = (): Schedules => ({
  ...{ add: refused, check: refused },
  list: async () => 'There are no jobs.',
  change: refused,
});
