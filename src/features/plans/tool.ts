// Tools: a plan for a long task, which the person sees as a checklist, and points of it that are marked.
// Where they are kept and shown is the gateway's.

import { z } from 'zod';
import { ToolError } from '../../kernel/message/errors.ts';
import { headOf } from '../../lib/text/cut.ts';
import { readDescription, type Tool } from '../../tools/tool.ts';
import {
  type Checkpoint,
  MAX_CHECKPOINTS,
  type MarkedPoint,
  type Plan,
  type PlanPlace,
  planProblem,
  planText,
  pointText,
  STEP_STATES,
  type WayBack,
} from './rules/plan.ts';

/** Where plans are kept, durably. */
export interface Plans {
  keep(plan: Plan, place: PlanPlace): Promise<void>;
  mark(checkpoint: Checkpoint, place: PlanPlace): Promise<void>;
  /** Undefined where nothing was marked that long ago. */
  goBack(way: WayBack, place: PlanPlace): Promise<MarkedPoint | undefined>;
}

const MAX_STEPS = 20;
const MAX_STEP_CHARS = 160;
const MAX_NOTE_CHARS = 1000;
const DETAIL_CHARS = 60;

const step = z.object({
  text: z.string().trim().min(1).max(MAX_STEP_CHARS).describe('What is done in it, short.'),
  status: z.enum(STEP_STATES).default('pending').describe('One step at most is doing.'),
  after: z
    .array(z.int().min(1).max(MAX_STEPS))
    .max(MAX_STEPS)
    .default([])
    .describe('Numbers of the steps that have to be over first, from 1.'),
});
const planInput = z.object({
  goal: z.string().trim().min(1).max(MAX_STEP_CHARS).describe('What the task is to come to.'),
  steps: z
    .array(step)
    .min(1)
    .max(MAX_STEPS)
    .describe('All steps, each time: what is given takes the place of the plan so far.'),
});

export function createPlan(where: () => Plans): Tool<z.infer<typeof planInput>> {
  return {
    name: 'plan',
    aliases: ['todo', 'todo_write', 'update_plan', 'make_plan', 'task_list'],
    parameterAliases: {
      goal: ['title', 'task', 'name'],
      steps: ['todos', 'items', 'plan', 'tasks'],
    },
    ...readDescription('plan'),
    access: 'say',
    input: planInput,
    describe: ({ goal }) => headOf(goal, DETAIL_CHARS),
    async run(plan, context) {
      const problem = planProblem(plan);
      if (problem !== undefined) throw new ToolError('invalid_arguments', problem);
      await where().keep(plan, context);
      return `Kept; the person sees it as a checklist.\n${planText(plan)}`;
    },
  };
}

const note = (description: string) =>
  z.string().trim().min(1).max(MAX_NOTE_CHARS).describe(description);
const checkpointInput = z.object({
  done: note('What is done, with the names, paths and numbers that will be needed.'),
  open: note('What is left to do, and what was decided about it.'),
});

export function createCheckpoint(where: () => Plans): Tool<z.infer<typeof checkpointInput>> {
  return {
    name: 'checkpoint',
    aliases: ['mark', 'save_progress', 'mark_progress'],
    parameterAliases: { done: ['completed', 'label'], open: ['remaining', 'left', 'next'] },
    ...readDescription('checkpoint'),
    access: 'say',
    input: checkpointInput,
    describe: ({ done }) => headOf(done, DETAIL_CHARS),
    async run(checkpoint, context) {
      await where().mark(checkpoint, context);
      return 'Marked: you are told of it at the beginning of every turn until the conversation begins anew.';
    },
  };
}

const backtrackInput = z.object({
  reason: note('Why what was tried since then is given up, so that it is not tried again.'),
  back: z
    .int()
    .min(1)
    .max(MAX_CHECKPOINTS)
    .default(1)
    .describe('How many checkpoints to go back; 1: to the newest.'),
});

export function createBacktrack(where: () => Plans): Tool<z.infer<typeof backtrackInput>> {
  return {
    name: 'backtrack',
    aliases: ['go_back', 'rollback_plan', 'revert_to_checkpoint'],
    parameterAliases: { reason: ['why', 'because'], back: ['steps', 'count'] },
    ...readDescription('backtrack'),
    access: 'say',
    input: backtrackInput,
    describe: ({ reason }) => headOf(reason, DETAIL_CHARS),
    async run(way, context) {
      const point = await where().goBack(way, context);
      if (point === undefined) {
        throw new ToolError(
          'not_found',
          'nothing was marked there; mark a point with checkpoint first',
        );
      }
      const plan = point.plan === undefined ? '' : `\n${planText(point.plan)}`;
      return `Back at this point, with another way to be found. What tools did since then is not undone.\n${pointText(point)}${plan}`;
    },
  };
}
