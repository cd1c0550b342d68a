// Tool: starts workflows of the workspace and reports their runs. It has no effects itself: every
// step of a run is limited to the rights of the turn that started it.

import { z } from 'zod';
import { ToolError } from '../../kernel/message/errors.ts';
import { givenText } from '../../lib/json/json.ts';
import { headOf } from '../../lib/text/cut.ts';
import {
  type MarkedAnswer,
  markedAnswers,
  readDescription,
  type Tool,
  type ToolContext,
} from '../../tools/tool.ts';
import { commissionOf, SUBAGENT_CHANNEL } from '../subagents/index.ts';
import { WORKFLOW_CHANNEL, WorkflowError } from './rules/workflow.ts';
import type { WorkflowAsker, WorkflowService } from './workflow-people.ts';

type Workflows = Pick<WorkflowService, 'list' | 'start' | 'runs' | 'show' | 'cancel'>;

const MAX_NAME_CHARS = 80;
const DETAIL_CHARS = 60;

const input = z.object({
  action: z
    .enum(['list', 'start', 'runs', 'show', 'cancel'])
    .describe('list: all workflows; runs: those started for this person.'),
  name: givenText(MAX_NAME_CHARS)
    .optional()
    .describe(
      'For start: the workflow. For show: a workflow or the id of a run. For cancel: a run.',
    ),
  input: z.record(z.string(), z.json()).optional().describe('For start: its inputs by name.'),
});
type Input = z.infer<typeof input>;

/** `loaded`: loads the workflows with their first use. */
export function createWorkflow(loaded: () => Promise<Workflows>): Tool<Input> {
  async function run(asked: Input, context: ToolContext): Promise<MarkedAnswer> {
    const { action, name } = asked;
    const asker = askerOf(context);
    const workflows = await loaded();
    if (action === 'list') return own(await workflows.list(), 'There are no workflows.');
    if (action === 'runs') return own(await workflows.runs(asker), 'There are no runs.');
    if (name === undefined) throw new ToolError('invalid_arguments', `${action} needs a name`);
    if (action === 'show') return workflows.show(name, asker);
    if (action === 'cancel') return own([await workflows.cancel(name, asker)]);
    const wish = { workflow: name, input: asked.input ?? {} };
    const { line } = await workflows.start(wish, asker);
    return own([
      `Started: ${line}. Its result is reported in this conversation when it has ended.`,
    ]);
  }

  return {
    name: 'workflow',
    ...readDescription('workflow'),
    aliases: ['workflows', 'run_workflow'],
    parameterAliases: { name: ['workflow', 'id', 'run'], input: ['inputs', 'arguments'] },
    access: 'read',
    input,
    describe: ({ action, name = '' }) => `${action} ${headOf(name, DETAIL_CHARS)}`.trim(),
    // Untrusted content in a run taints the turn that reads it.
    ...markedAnswers(run),
  };
}

const own = (lines: readonly string[], none = ''): MarkedAnswer => ({
  text: lines.length === 0 ? none : lines.join('\n'),
  isForeign: false,
});

function askerOf(context: ToolContext): WorkflowAsker {
  const { session, chat, person, payer } = context;
  return {
    session,
    notes: person.notes,
    key: `${session} ${context.turnId}`,
    starter() {
      const isNoPlace = chat.channel === SUBAGENT_CHANNEL || chat.channel === WORKFLOW_CHANNEL;
      if (payer === undefined || isNoPlace) {
        throw new WorkflowError('Workflows are started only within a turn of a person or a job.');
      }
      return { home: { kind: 'chat', session, chat }, ...commissionOf(context, payer) };
    },
  };
}
