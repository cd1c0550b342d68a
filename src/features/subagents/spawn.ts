// Tool: starts subagents, each in a session of its own, and reports their state. It has no effects
// itself: every call of a subagent is limited to the rights of the turn that asked.

import { z } from 'zod';
import { ToolError } from '../../kernel/message/errors.ts';
import { defined, givenText } from '../../lib/json/json.ts';
import { headOf } from '../../lib/text/cut.ts';
import {
  type MarkedAnswer,
  markedAnswers,
  readDescription,
  type Tool,
  type ToolContext,
} from '../../tools/tool.ts';
import type { Step, SubagentRequest, Until } from './rules/subagent.ts';
import type { SubagentStarts } from './subagent-starts.ts';

/** All answers are texts for the model. */
export type SpawnSubagents = Pick<
  SubagentStarts,
  'isEnabled' | 'start' | 'list' | 'check' | 'wait' | 'cancel'
>;

const MAX_TASK_CHARS = 20_000;
const MAX_STEPS = 20;
const MAX_ROUNDS = 20;
const USUAL_ROUNDS = 5;
const MAX_AHEAD = 3;
const USUAL_WAIT_SECS = 60;
const MAX_WAIT_SECS = 540;
/** Added to the deadline, for the answer of a wait. */
const WAIT_SLACK_MS = 10_000;
const DETAIL_CHARS = 60;

const input = z.object({
  action: z
    .enum(['spawn', 'list', 'check', 'wait', 'cancel', 'pipeline', 'loop'])
    .describe('spawn starts one subagent; pipeline and loop a series of them.'),
  id: givenText(80)
    .optional()
    .describe(
      'For check, wait and cancel: the subagent. For pipeline and loop: your own name for it; the same name ' +
        'continues where it stopped.',
    ),
  task: givenText(MAX_TASK_CHARS)
    .optional()
    .describe('For spawn and loop. The whole task: a subagent knows nothing of this conversation.'),
  profile: givenText(60).optional().describe('For spawn and loop: kind of subagent; see list.'),
  label: givenText(80).optional().describe('A few words for the person.'),
  seconds: z
    .int()
    .min(1)
    .max(MAX_WAIT_SECS)
    .optional()
    .describe(`For wait; default ${USUAL_WAIT_SECS}.`),
  steps: z
    .array(
      z.object({
        prompt: givenText(MAX_TASK_CHARS),
        profile: givenText(60).optional(),
        ahead_by: z
          .int()
          .min(0)
          .max(MAX_AHEAD)
          .optional()
          .describe('Repeated until one answer leads by this many votes; for short answers.'),
      }),
    )
    .min(1)
    .max(MAX_STEPS)
    .optional()
    .describe('For pipeline. Each step gets the earlier results.'),
  rounds: z
    .int()
    .min(1)
    .max(MAX_ROUNDS)
    .optional()
    .describe(`For loop: maximum rounds; default ${USUAL_ROUNDS}.`),
  until_line: givenText(80)
    .optional()
    .describe('For loop: ends when a line of the answer is exactly this, e.g. ALL-TESTS-PASS.'),
  until_json: z
    .object({ field: givenText(80), equals: z.union([z.string(), z.number(), z.boolean()]) })
    .optional()
    .describe('For loop: ends when the JSON object at the end of the answer has this value.'),
});
type Input = z.infer<typeof input>;

export function createSpawn(subagents: SpawnSubagents): Tool<Input> {
  async function run(asked: Input, context: ToolContext): Promise<MarkedAnswer> {
    const { action, id } = asked;
    if (action === 'list') return subagents.list(context);
    if (action === 'wait') {
      const ms = (asked.seconds ?? USUAL_WAIT_SECS) * 1000;
      return subagents.wait(id, ms, context, context.signal);
    }
    if (action === 'check' || action === 'cancel') {
      return subagents[action](needed(id, `${action} needs the id of a subagent`), context);
    }
    return subagents.start(wishOf(action, asked), context);
  }

  return {
    name: 'spawn',
    ...readDescription('spawn'),
    aliases: [
      ...['subagent', 'delegate', 'spawn_agent', 'task_agent'],
      ...(['wait', 'check', 'list', 'cancel'] as const).map((action) => ({
        name: action,
        implies: { action },
      })),
    ],
    parameterAliases: {
      id: ['task_id', 'agent_id', 'pipeline_id', 'helper'],
      task: ['prompt', 'message', 'instructions'],
      profile: ['agent', 'agent_type'],
      seconds: ['timeout', 'timeout_secs'],
      rounds: ['max_rounds'],
    },
    access: 'read',
    isVerbatim: true,
    isAvailable: () => subagents.isEnabled(),
    unavailableBecause: () => 'agents.subagents.enabled is false',
    input,
    timeoutMs: ({ action, seconds = USUAL_WAIT_SECS }) =>
      (action === 'wait' ? seconds * 1000 : 0) + WAIT_SLACK_MS,
    describe: ({ action, id, label, profile, task = '' }) =>
      [action, id ?? label ?? profile ?? headOf(task, DETAIL_CHARS)].join(' ').trim(),
    // Untrusted content that subagents read taints the turn that reads their results.
    ...markedAnswers(run),
  };
}

function needed<T>(value: T | undefined, problem: string): T {
  if (value === undefined) throw new ToolError('invalid_arguments', problem);
  return value;
}

function wishOf(action: 'spawn' | 'pipeline' | 'loop', asked: Input): SubagentRequest {
  const { label, profile, rounds = USUAL_ROUNDS } = asked;
  const named = defined({ label, id: action === 'spawn' ? undefined : asked.id });
  const kind = defined({ profile });
  if (action === 'pipeline') {
    const [first, ...rest] = (asked.steps ?? []).map(stepOf);
    const steps = [needed(first, 'pipeline needs steps'), ...rest] as const;
    return { ...named, plan: { kind: action, steps } };
  }
  const task = needed(asked.task, `${action} needs a task`);
  if (action === 'spawn') return { ...named, plan: { kind: 'task', task, ...kind } };
  return { ...named, plan: { kind: action, task, ...kind, until: untilOf(asked), rounds } };
}

function stepOf({ prompt, profile, ahead_by = 0 }: NonNullable<Input['steps']>[number]): Step {
  return { prompt, aheadBy: ahead_by, ...defined({ profile }) };
}

function untilOf({ until_line, until_json }: Input): Until {
  if (until_json !== undefined) return { kind: 'json', ...until_json };
  const problem = 'loop needs until_line or until_json to know when it is done';
  return { kind: 'line', text: needed(until_line, problem) };
}
