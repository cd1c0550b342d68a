// Where a test is not about workflows: there are none.

import type { Workflows } from '../../src/features/workflows/tool.ts';
import type { WorkflowDesk } from '../../src/features/workflows/workflow-people.ts';

export const noWorkflows = (): Workflows => ({ ...NO_WORKFLOWS, isEnabled: () => true });

export const NO_WORKFLOWS: WorkflowDesk = {
  isEnabled: () => false,
  list: async () => [],
  runs: async () => [],
  start: async () => ({ id: '', line: '' }),
  show: async () => ({ text: '', isForeign: false }),
  cancel: async () => '',
  atWork: async () => [],
  stopAll: async () => 0,
};
