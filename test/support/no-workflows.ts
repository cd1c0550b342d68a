// Where a test is not about workflows: there are none.

import type { WorkflowService } from '../../src/features/workflows/workflow-people.ts';

export const NO_WORKFLOWS: WorkflowService = {
  all: async () => [],
  list: async () => [],
  runs: async () => [],
  start: async () => ({ id: '', line: '' }),
  show: async () => ({ text: '', isForeign: false }),
  cancel: async () => '',
  atWork: async () => [],
  stopAll: async () => 0,
};
