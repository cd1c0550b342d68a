// The part of the configuration about workflows: steps that files of the workspace lay down.

import type { z } from 'zod';
import { count, flag, section } from '../../kernel/config/settings-fields.ts';

export const workflowsSchema = section({
  enabled: flag(false).describe(
    'Workflows of the workspace may be started, by people, jobs and the agent.',
  ),
  maxRunning: count(1, 200, 8).describe('Runs of all conversations at a time.'),
  steps: count(1, 1000, 50).describe('Steps of one run; a workflow may allow itself less.'),
  minutes: count(1, 1440, 30).describe('Wall time of one run, after a restart too.'),
  tokens: count(1000, 100_000_000, 300_000).describe(
    'Tokens, in and out, of one run over all its model calls.',
  ),
});

export type WorkflowsConfig = z.infer<typeof workflowsSchema>;

type WithWorkflows = { readonly agents: { readonly workflows: WorkflowsConfig } };

export const workflowsAreOn = ({ agents }: WithWorkflows): boolean => agents.workflows.enabled;
