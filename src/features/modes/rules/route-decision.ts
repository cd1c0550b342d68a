// What a router decides, and what becomes of it: a plan is checked against what the turn really has
// before anything is done, and its key is derived from the turn, so that a repeat is the same plan.

import { z } from 'zod';

export const ROUTE_ACTIONS = [
  'respond',
  'tool',
  'specialist',
  'subagent',
  'ask_user',
  'pipeline',
] as const;

const MAX_TARGET_CHARS = 200;

export const routeDecisionSchema = z.strictObject({
  action: z.enum(ROUTE_ACTIONS),
  target: z.string().max(MAX_TARGET_CHARS).default(''),
  args: z.record(z.string(), z.unknown()).default({}),
  confidence: z.number().min(0).max(1),
});
export type RouteDecision = z.infer<typeof routeDecisionSchema>;

/** A decision with the name of its place in the turn: the same plan has the same key. */
export type ToolPlan = RouteDecision & { readonly idempotencyKey: string };

/** A call by the name of a tool, or of the specialist. */
export type PlannedCall = {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
};

/** What the turn has. */
export type RouteMeans = {
  readonly hasSpecialist: boolean;
  /** The person's words, for a plan that repeats no task. */
  readonly task: string;
  /** Whether the call could run: the tool is offered and takes the arguments. */
  canCall(call: PlannedCall): boolean;
};

export type ReadPlan =
  | { readonly kind: 'respond' }
  | { readonly kind: 'call'; readonly call: PlannedCall }
  /** There is no way to wait for an answer here: the question itself is what is said. */
  | { readonly kind: 'say'; readonly text: string }
  | { readonly kind: 'invalid'; readonly problem: string };

/** The call that answers a plan of the specialist; no tool. */
export const SPECIALIST = 'specialist';
const GENERAL = 'general';
const MAX_STEPS = 20;

const invalid = (problem: string): ReadPlan => ({ kind: 'invalid', problem });

export function readPlan({ action, target, args }: ToolPlan, means: RouteMeans): ReadPlan {
  switch (action) {
    case 'respond':
      return { kind: 'respond' };
    case 'tool':
      if (target === '') return invalid('no tool is named');
      return possible({ name: target, args }, means);
    case 'specialist': {
      if (!means.hasSpecialist) return invalid('there is no specialist');
      const task = textIn(args, 'task', 'instruction', 'prompt') ?? means.task;
      const domain = target === '' ? (textIn(args, 'domain') ?? GENERAL) : target;
      return { kind: 'call', call: { name: SPECIALIST, args: { domain, task } } };
    }
    case 'subagent':
      return possible({ name: 'spawn', args: subagentArgs(args, means) }, means);
    case 'pipeline':
      return pipeline(args, means);
    case 'ask_user':
      return question(args, means);
  }
}

function possible(call: PlannedCall, means: RouteMeans): ReadPlan {
  if (means.canCall(call)) return { kind: 'call', call };
  return invalid(`${call.name} cannot be called so here`);
}

function subagentArgs(args: RouteDecision['args'], means: RouteMeans) {
  const task = textIn(args, 'task', 'prompt', 'instruction') ?? means.task;
  const [profile, label] = [textIn(args, 'profile'), textIn(args, 'label')];
  return {
    action: 'spawn',
    task,
    ...(profile === undefined ? {} : { profile }),
    ...(label === undefined ? {} : { label }),
  };
}

function pipeline(args: RouteDecision['args'], means: RouteMeans): ReadPlan {
  const given = Array.isArray(args['steps']) ? args['steps'].slice(0, MAX_STEPS) : [];
  const steps = given.map((step: unknown) => (typeof step === 'string' ? { prompt: step } : step));
  if (steps.length === 0) return invalid('a pipeline needs steps');
  return possible({ name: 'spawn', args: { action: 'pipeline', steps } }, means);
}

function question(args: RouteDecision['args'], means: RouteMeans): ReadPlan {
  const text = textIn(args, 'question', 'text', 'message', 'prompt');
  if (text === undefined) return invalid('there is no question');
  const choices = Array.isArray(args['choices']) ? { choices: args['choices'] } : {};
  const call = { name: 'ask_user', args: { question: text, ...choices } };
  return means.canCall(call) ? { kind: 'call', call } : { kind: 'say', text };
}

function textIn(args: RouteDecision['args'], ...names: readonly string[]): string | undefined {
  const texts = names.map((name) => args[name]);
  return texts.find((text): text is string => typeof text === 'string' && text.trim() !== '');
}
