// The tower of Hanoi: how often single moves are right (`calibrate`), and how much of a whole solution
// is without error when every move is voted on until one leads by k (`solve`).

import {
  HANOI_CHANCE,
  HANOI_SYSTEM,
  hanoiPrompt,
  type MoveAnswer,
  moveText,
  readMove,
  type Step,
  solutionOf,
  spreadSteps,
} from '../core/eval-hanoi.ts';
import {
  barsOf,
  type EvalItem,
  type EvalPlot,
  known,
  scoreOf,
  sumOf,
} from '../core/eval-result.ts';
import { leadFor, mean, median, votersFor, windows } from '../core/eval-stats.ts';
import { tally } from '../core/vote.ts';
import { attempt } from './attempt.ts';
import type { Benchmark, Subject, Trial } from './eval.ts';

export type HanoiOptions = {
  readonly seed: number;
  readonly disks: number;
} & (
  | { readonly mode: 'calibrate'; readonly samples: number }
  | { readonly mode: 'solve'; readonly aheadBy: number; readonly maxVotes: number }
);

const TEMPERATURE = 0.3;
/** So sure a whole solution is to be. */
const TARGET = 0.999;
const PARTS = 5;
const WINDOW = 5;

export function hanoi(options: HanoiOptions): Benchmark {
  const steps = solutionOf(options.disks);
  const planned = options.mode === 'calibrate' ? options.samples : steps.length;
  const asked = options.mode === 'calibrate' ? spreadSteps(steps, options.samples) : steps;
  const { seed, mode, ...rest } = options;
  return {
    benchmark: 'hanoi',
    variant: mode,
    seed,
    options: rest,
    planned,
    ...(mode === 'calibrate' ? { chance: HANOI_CHANCE } : {}),
    async *run(trial, signal) {
      for (const [index, step] of asked.entries()) {
        const named = {
          id: `${index + 1}`,
          group: partOf(index, planned),
          wanted: moveText(step.move),
        };
        yield await attempt(named, signal, () =>
          options.mode === 'calibrate'
            ? singleMove(trial, step, signal)
            : votedMove(trial, step, options, signal),
        );
      }
    },
    summary: (items) =>
      options.mode === 'calibrate' ? calibrated(items, steps.length) : solved(items),
  };
}

function partOf(index: number, planned: number): string {
  const part = Math.floor((index * PARTS) / planned);
  return `${Math.ceil((part * 100) / PARTS)}-${Math.ceil(((part + 1) * 100) / PARTS)} %`;
}

type Made = Omit<EvalItem, 'id' | 'group' | 'wanted'>;

async function singleMove({ subject }: Trial, step: Step, signal: AbortSignal): Promise<Made> {
  const { answer, text, ms } = await vote(subject, step, signal);
  const isRight = answer.kind === 'move' && moveText(answer.move) === moveText(step.move);
  const flagged = answer.kind === 'flagged' ? 1 : 0;
  const got = answer.kind === 'flagged' ? `${answer.flag}: ${text}` : moveText(answer.move);
  return { state: isRight ? 'right' : 'wrong', got, ms, counts: { flagged } };
}

async function vote(subject: Subject, { towers }: Step, signal: AbortSignal) {
  const said = [{ role: 'user' as const, text: hanoiPrompt(towers) }];
  const question = { system: HANOI_SYSTEM, said, temperature: TEMPERATURE };
  const { text, isCut, ms } = await subject.ask(question, signal);
  return { answer: readMove(text, isCut) satisfies MoveAnswer, text, ms };
}

/** Asks until one move leads by k; a flagged answer is no vote but counts against the most that are asked. */
async function votedMove(
  { subject }: Trial,
  step: Step,
  { aheadBy, maxVotes }: Extract<HanoiOptions, { mode: 'solve' }>,
  signal: AbortSignal,
): Promise<Made> {
  const votes: string[] = [];
  let flagged = 0;
  let ms = 0;
  let standing = tally(votes, aheadBy);
  while (standing.kind === 'open' && votes.length + flagged < maxVotes) {
    const cast = await vote(subject, step, signal);
    ms += cast.ms;
    if (cast.answer.kind === 'flagged') flagged += 1;
    else votes.push(moveText(cast.answer.move));
    standing = tally(votes, aheadBy);
  }
  const wanted = moveText(step.move);
  const rightVotes = votes.filter((one) => one === wanted).length;
  const counts = { votes: votes.length, flagged, rightVotes };
  if (standing.kind === 'won') {
    return { state: standing.key === wanted ? 'right' : 'wrong', got: standing.key, ms, counts };
  }
  const tied = standing.leaders.length > 1 ? 'a tie: ' : 'no move leads: ';
  return { state: 'undecided', got: tied + standing.leaders.join('; '), ms, counts };
}

function calibrated(items: readonly EvalItem[], steps: number) {
  const { rate, total } = scoreOf(items);
  const answered = items.filter(({ state }) => state === 'right' || state === 'wrong');
  return {
    figures: known({
      'optimal steps': steps,
      'red-flag rate': total === 0 ? undefined : sumOf(answered, 'flagged') / total,
      'median seconds': seconds(median(answered.map(({ ms }) => ms))),
      'voters for 99.9 % of a step (majority)':
        rate === undefined ? undefined : votersFor(rate, TARGET),
      'lead k for 99.9 % of the whole solution':
        rate === undefined ? undefined : leadFor(rate, steps, TARGET),
    }),
    plots: barsOf('right moves by part of the solution', items),
  };
}

function solved(items: readonly EvalItem[]) {
  const decided = items.filter(({ state }) => state !== 'error');
  const firstError = decided.findIndex(({ state }) => state !== 'right');
  const votes = sumOf(decided, 'votes');
  const right = decided.map(({ state }) => (state === 'right' ? 1 : 0));
  const errorFree = windows(right, WINDOW);
  const plot: EvalPlot = {
    kind: 'line',
    title: `error-free steps, means of ${WINDOW}`,
    xLabel: 'step',
    yLabel: 'share',
    points: errorFree.map((y, at) => ({ x: at + WINDOW, y })),
  };
  return {
    figures: known({
      'steps without error before the first': firstError === -1 ? decided.length : firstError,
      'error-free rate of steps': mean(right),
      'error-free rate of single votes':
        votes === 0 ? undefined : sumOf(decided, 'rightVotes') / votes,
      'votes a step': decided.length === 0 ? undefined : votes / decided.length,
      'red flags': sumOf(decided, 'flagged'),
      'undecided steps': decided.filter(({ state }) => state === 'undecided').length,
      'median seconds a step': seconds(median(decided.map(({ ms }) => ms))),
    }),
    plots: [
      ...barsOf('right steps by part of the solution', items),
      ...(errorFree.length > 1 ? [plot] : []),
    ],
  };
}

const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1000);
