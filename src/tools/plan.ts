// Tools: a plan for a long task, which the person sees as a checklist, and points of it that are marked.
// Where they are kept and shown is the gateway's.

import { z } from 'zod';
import { ToolError } from '../core/errors.ts';
import {
  type Checkpoint,
  type Plan,
  type PlanPlace,
  planProblem,
  planText,
  STEP_STATES,
} from '../core/plan.ts';
import { readDescription } from './description.ts';
import type { Tool } from './tool.ts';

/** Where plans are kept, durably. */
export interface Plans {
  keep(plan: Plan, place: PlanPlace): Promise<void>;
  mark(checkpoint: Checkpoint, place: PlanPlace): Promise<void>;
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

/** `where`: asked at each call, because plans are built later than tools. */
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
    describe: ({ goal }) => goal.slice(0, DETAIL_CHARS).toWellFormed(),
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
    describe: ({ done }) => done.slice(0, DETAIL_CHARS).toWellFormed(),
    async run(checkpoint, context) {
      await where().mark(checkpoint, context);
      return 'Marked: you are told of it at the beginning of every turn until the conversation begins anew.';
    },
  };
}
