// What applies while workflows are switched off.

import type { WhenOff } from '../../kernel/feature.ts';
import { WORKFLOW_COMMANDS, WORKFLOWS_OFF } from './index.ts';
import { WORKFLOW_CHANNEL } from './rules/workflow.ts';

export const off: WhenOff = {
  text: WORKFLOWS_OFF,
  commands: WORKFLOW_COMMANDS,
  channels: [WORKFLOW_CHANNEL],
  async personalData({ rows, live }) {
    const { forgetRuns } = await import('./workflow-runs.ts');
    const { openWorkflowRows } = await import('./workflow-rows.ts');
    return { forget: forgetRuns(openWorkflowRows(rows, live.redact)) };
  },
};
