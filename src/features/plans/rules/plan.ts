// The plan of a long task and its checkpoints: what is valid, the checklist for the person and the
// reminder for the model. index.ts stores and shows them.

import type { SessionKey } from '../../../kernel/message/ids.ts';
import type { ChatRef } from '../../../kernel/message/message.ts';
import { truncateText } from '../../../lib/text/cut.ts';

export const STEP_STATES = ['pending', 'doing', 'done', 'dropped'] as const;

type PlanStep = {
  readonly text: string;
  readonly status: (typeof STEP_STATES)[number];
  /** Numbers of the steps that have to end first, from 1. */
  readonly after: readonly number[];
};

export type Plan = { readonly goal: string; readonly steps: readonly PlanStep[] };

/** What is done and what is open at this point, in the agent's words. */
export type Checkpoint = { readonly done: string; readonly open: string };

/** A checkpoint with what is needed to go back to it. */
export type MarkedPoint = Checkpoint & {
  /** The plan at that time. */
  readonly plan?: Plan;
  /** Why attempts from here were given up, oldest first. */
  readonly givenUp?: readonly string[];
};

/** `back`: number of checkpoints, 1 = to the newest. */
export type WayBack = { readonly back: number; readonly reason: string };

/** The reminder for the model. */
export type StandingNote = {
  readonly text: string;
  /** Written while untrusted content was in the conversation. */
  readonly isForeign: boolean;
};

type PlanState = {
  readonly plan: Plan | undefined;
  /** Oldest first. */
  readonly checkpoints: readonly MarkedPoint[];
};

/** The conversation that a plan belongs to. */
export type PlanPlace = {
  readonly session: SessionKey;
  readonly chat: ChatRef;
  /** The conversation contains untrusted content. */
  readonly isTainted: boolean;
};

/** The newest are kept. */
export const MAX_CHECKPOINTS = 5;
const MAX_GIVEN_UP = 5;
const MAX_STANDING_CHARS = 6000;

const SIGNS: Readonly<Record<PlanStep['status'], string>> = {
  pending: '☐',
  doing: '▶',
  done: '☑',
  dropped: '✕',
};

const isOver = ({ status }: Pick<PlanStep, 'status'>) => status === 'done' || status === 'dropped';

export const isFinished = ({ steps }: Plan) => steps.every(isOver);

/** Why the plan is invalid, for the model. */
export function planProblem({ steps }: Plan): string | undefined {
  for (const [index, { after, status }] of steps.entries()) {
    const number = index + 1;
    const missing = after.find((other) => other > steps.length || other === number);
    if (missing !== undefined) return `step ${number} cannot come after step ${missing}`;
    const open = after.find((other) => !isOver(steps[other - 1] ?? { status: 'done' }));
    if ((status === 'doing' || status === 'done') && open !== undefined) {
      return `step ${number} is ${status}, but step ${open}, which must be over first, is not`;
    }
  }
  return hasCircle(steps) ? 'steps wait for each other in a circle' : undefined;
}

/**
 * Goes back by a number of checkpoints, 1 = to the newest: restores the plan of that time, removes
 * later checkpoints and records why the attempt was given up. Undefined where there are fewer
 * checkpoints.
 */
export function goneBack(
  { plan, checkpoints }: PlanState,
  { back, reason }: WayBack,
): (PlanState & { readonly to: MarkedPoint }) | undefined {
  const at = checkpoints.length - back;
  const point = checkpoints[at];
  if (point === undefined) return undefined;
  const to = { ...point, givenUp: [...(point.givenUp ?? []), reason].slice(-MAX_GIVEN_UP) };
  return { plan: point.plan ?? plan, checkpoints: [...checkpoints.slice(0, at), to], to };
}

function hasCircle(steps: readonly PlanStep[]): boolean {
  const left = new Set(steps.keys());
  for (;;) {
    const free = [...left].filter((index) =>
      (steps[index]?.after ?? []).every((other) => !left.has(other - 1)),
    );
    if (free.length === 0) return left.size > 0;
    for (const index of free) left.delete(index);
  }
}

/** As the person sees it, Markdown. */
export function checklist({ goal, steps }: Plan): string {
  const lines = steps.map(({ text, status }) => `- ${SIGNS[status]} ${text}`);
  const over = steps.filter(isOver).length;
  return `**${goal}** (${over} of ${steps.length})\n${lines.join('\n')}`;
}

/** The reminder for the model; undefined where no plan is in progress. */
export function standingNote({ plan, checkpoints }: PlanState): string | undefined {
  const open = plan === undefined || isFinished(plan) ? [] : [planText(plan)];
  const marks = checkpoints.map(pointText);
  if (open.length + marks.length === 0) return undefined;
  const text = [...open, ...marks].join('\n');
  return `[In progress, from your own notes:\n${truncateText(text, MAX_STANDING_CHARS, 'notes left out')}]`;
}

export function pointText({ done, open, givenUp = [] }: MarkedPoint): string {
  const tried = givenUp.map((reason) => ` Given up from here: ${reason}`).join('');
  return `Checkpoint. Done: ${done} Open: ${open}${tried}`;
}

export function planText({ goal, steps }: Plan): string {
  const lines = steps.map(({ text, status, after }, index) => {
    const behind = after.length === 0 ? '' : ` (after ${after.join(', ')})`;
    return `${index + 1}. ${status}: ${text}${behind}`;
  });
  return [`Plan: ${goal}`, ...lines].join('\n');
}
