// Decides what a run of a workflow does next: by its definition and the flags of its state alone, never
// by what a model says of the way. The same state always gives the same decision, and there always is
// one. A run cannot go round for ever: it is bounded, and a step is repeated only where a value changed.

import { type Condition, holds } from './condition.ts';
import type { Definition, SkillStep, Step, ToolStep, WorkflowLimits } from './definition.ts';
import { recordOf, statusOf, type WorkflowState } from './state.ts';

export type Decision =
  | { readonly kind: 'LLM_SKILL'; readonly step: SkillStep; readonly number: number }
  | { readonly kind: 'TOOL'; readonly step: ToolStep; readonly number: number }
  | { readonly kind: 'COMPLETE' }
  /** Nothing can be done: `waiting` for now, else for good. `reason` is for people. */
  | {
      readonly kind: 'NOOP';
      readonly why: 'waiting' | 'failed' | 'limit' | 'stuck';
      readonly reason: string;
    };

/** Of one unit of money. */
export const MICROS = 1_000_000;

/** `most`: what every run is held to; of that and the workflow's own the less counts. */
export function decide(
  { workflow }: Definition,
  state: WorkflowState,
  most: WorkflowLimits,
): Decision {
  const { steps, complete } = workflow;
  const { underWay } = state;
  if (underWay !== undefined) {
    const what =
      underWay.approval === undefined ? 'is under way' : 'waits for an owner to allow it';
    return { kind: 'NOOP', why: 'waiting', reason: `the step ${underWay.step} ${what}` };
  }
  const failed = steps.find((step) => step.onFailure === 'stop' && isFailed(step, state));
  if (failed !== undefined) {
    const reason = `the step ${failed.id} failed: ${recordOf(state, failed.id).error ?? 'no reason is known'}`;
    return { kind: 'NOOP', why: 'failed', reason };
  }
  if (complete !== undefined && isTrue(complete, state)) return { kind: 'COMPLETE' };
  const next = nextStep(steps, state);
  if (next === undefined && complete === undefined) return { kind: 'COMPLETE' };
  if (next === undefined) return { kind: 'NOOP', why: 'stuck', reason: STUCK };
  const limit = usedUp(state, workflow.limits, most);
  if (limit !== undefined) return { kind: 'NOOP', why: 'limit', reason: limit };
  const number = state.number + 1;
  return next.kind === 'tool'
    ? { kind: 'TOOL', step: next, number }
    : { kind: 'LLM_SKILL', step: next, number };
}

const STUCK =
  'no step can go on, as nothing has changed since each was done, and what makes the workflow ' +
  'complete does not hold';

/** A step that failed goes first, then in order from behind the last one, round to it. */
function nextStep(steps: readonly Step[], state: WorkflowState): Step | undefined {
  const at = steps.findIndex(({ id }) => id === state.last);
  const last = steps[at];
  if (last !== undefined && recordOf(state, last.id).status === 'again') return last;
  const inOrder = [...steps.slice(at + 1), ...steps.slice(0, at + 1)];
  return inOrder.find((step) => isDue(step, state));
}

function isDue(step: Step, state: WorkflowState): boolean {
  const { runs, ranAt } = recordOf(state, step.id);
  if (isFailed(step, state) || runs >= step.runs) return false;
  if (runs > 0 && state.changes <= ranAt) return false;
  return step.when === undefined || isTrue(step.when, state);
}

const isFailed = ({ id }: Step, state: WorkflowState) => statusOf(state, id) === 'failed';

const isTrue = (condition: Condition, state: WorkflowState) =>
  holds(condition, { values: state.values, status: (step) => statusOf(state, step) });

function usedUp(
  { number, tokens, micros }: WorkflowState,
  own: WorkflowLimits,
  most: WorkflowLimits,
): string | undefined {
  const steps = less(own.steps, most.steps);
  if (number >= steps) return `all ${steps} steps it may take are used up`;
  const maxTokens = less(own.tokens, most.tokens);
  if (tokens >= maxTokens) return `all ${maxTokens} tokens it may take are used up`;
  const money = less(own.money, most.money);
  return micros >= money * MICROS ? `all the money it may cost (${money}) is used up` : undefined;
}

const less = (one = Number.POSITIVE_INFINITY, other = Number.POSITIVE_INFINITY) =>
  Math.min(one, other);
