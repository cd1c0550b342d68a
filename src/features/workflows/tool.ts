// Tool: starts workflows of the workspace and asks after their runs. It changes nothing itself: every step
// of a run is held to what the turn that started it might do.

import { z } from 'zod';
import { ToolError } from '../../kernel/message/errors.ts';
import { headOf } from '../../lib/text/cut.ts';
import { readDescription, type Tool, type ToolContext } from '../../tools/tool.ts';
import { type WorkflowAnswer, WorkflowError, type WorkflowWish } from './rules/workflow.ts';

/** Where workflows are kept. Whatever cannot be done is a WorkflowError. */
export interface Workflows {
  isEnabled(): boolean;
  list(): Promise<WorkflowAnswer>;
  /** The same wish of the same turn starts one. */
  start(wish: WorkflowWish, asker: ToolContext): Promise<WorkflowAnswer>;
  /** Of whoever asks. */
  runs(asker: ToolContext): Promise<WorkflowAnswer>;
  show(name: string, asker: ToolContext): Promise<WorkflowAnswer>;
  cancel(id: string, asker: ToolContext): Promise<WorkflowAnswer>;
}

const MAX_NAME_CHARS = 80;
const DETAIL_CHARS = 60;

const input = z.object({
  action: z
    .enum(['list', 'start', 'runs', 'show', 'cancel'])
    .describe('list: the workflows there are; runs: those started for this person.'),
  name: z
    .string()
    .trim()
    .min(1)
    .max(MAX_NAME_CHARS)
    .optional()
    .describe(
      'For start: the workflow. For show: a workflow or the id of a run. For cancel: a run.',
    ),
  input: z.record(z.string(), z.json()).optional().describe('For start: its inputs by name.'),
});
type Input = z.infer<typeof input>;

export function createWorkflow(workflows: Workflows): Tool<Input> {
  /** What a run read of others taints whoever looks at it. */
  const foreign = new WeakMap<Input, boolean>();

  async function run(asked: Input, context: ToolContext): Promise<WorkflowAnswer> {
    const { action, name } = asked;
    if (action === 'list') return workflows.list();
    if (action === 'runs') return workflows.runs(context);
    if (name === undefined) throw new ToolError('invalid_arguments', `${action} needs a name`);
    if (action !== 'start') return workflows[action](name, context);
    return workflows.start({ workflow: name, input: asked.input ?? {} }, context);
  }

  return {
    name: 'workflow',
    ...readDescription('workflow'),
    aliases: ['workflows', 'run_workflow'],
    parameterAliases: { name: ['workflow', 'id', 'run'], input: ['inputs', 'arguments'] },
    access: 'read',
    taints: true,
    isOwn: (asked) => foreign.get(asked) !== true,
    isAvailable: () => workflows.isEnabled(),
    unavailableBecause: () => 'agents.workflows.enabled is false',
    input,
    describe: ({ action, name = '' }) => `${action} ${headOf(name, DETAIL_CHARS)}`.trim(),
    async run(asked, context) {
      try {
        const answer = await run(asked, context);
        foreign.set(asked, answer.isForeign);
        return answer.text;
      } catch (error) {
        if (error instanceof WorkflowError) throw new ToolError('invalid_arguments', error.message);
        throw error;
      }
    },
  };
}
