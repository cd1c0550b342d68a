// Where a test is not about workflows: there are none.

import type { Workflows } from '../../src/features/workflows/tool.ts';
import type { WorkflowDesk } from '../../src/features/workflows/workflow-people.ts';

const none = async () => ({ text: 'There are no workflows.', isForeign: false });

export const noWorkflows = (): Workflows => ({
  isEnabled: () => true,
  ...{ start: none, list: none, runs: none, show: none, cancel: none },
});

export const NO_WORKFLOWS: WorkflowDesk = {
  isEnabled: () => false,
  list: async () => [],
  runs: async () => [],
  start: async () => '',
  show: async () => '',
  cancel: async () => '',
  atWork: async () => [],
  stopAll: async () => 0,
};
