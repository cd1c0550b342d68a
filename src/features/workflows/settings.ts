// Configuration of workflows: declared steps from files of the workspace.

import { z } from 'zod';
import { count, section } from '../../kernel/config/settings-fields.ts';
import { t } from '../../lib/texts.ts';

/** In the workspace. */
export const WORKFLOWS_FOLDER = 'workflows';
export const CAPABILITIES_FOLDER = 'capabilities';

export const workflowsSchema = section({
  enabled: z
    .union([z.boolean(), z.literal('auto')], t`Use true, false or "auto"`)
    .default('auto')
    .describe(
      'Allow people, jobs and the agent to start workflows of the workspace. auto: the agent only with a ' +
        'main model that is not small.',
    ),
  maxRunning: count(1, 200, 8).describe('Most runs of all conversations at the same time.'),
  steps: count(1, 1000, 50).describe('Most steps of one run; a workflow can set a lower limit.'),
  minutes: count(1, 1440, 30).describe('Longest run, including restarts.'),
  tokens: count(1000, 100_000_000, 300_000).describe(
    'Most tokens, in and out, for all model calls of one run.',
  ),
  money: z
    .number()
    .min(0)
    .max(1_000_000)
    .default(0.5)
    .describe(
      'Most money for one run, in the currency of the budgets; models of unknown price count for tokens ' +
        'only. 0: no limit.',
    ),
});

export type WorkflowsConfig = z.infer<typeof workflowsSchema>;
