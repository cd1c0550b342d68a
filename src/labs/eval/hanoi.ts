// The tower of Hanoi: how often single moves are right (`calibrate`), and how much of a whole solution
// is without error when every move is voted on until one leads by k (`solve`).

import {
  type Ballot,
  USUAL_GATE,
  USUAL_MAX_FLAGGED,
  VOTE_TARGET,
  verdictOf,
  votersFor,
} from '../../features/subagents/rules/vote.ts';
import { attempt } from './ask-agent.ts';
import type { Benchmark, Subject, Trial } from './eval.ts';
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
} from './rules/hanoi.ts';
import { barsOf, type EvalItem, type EvalPlot, known, scoreOf, sumOf } from './rules/result.ts';
import { leadFor, mean, medianSeconds, windows } from './rules/stats.ts';

export type HanoiOptions = {
  readonly seed: number;
  readonly disks: number;
} & (
  | { readonly mode: 'calibrate'; readonly samples: number }
  | {
      readonly mode: 'solve';
      readonly aheadBy: number;
      readonly maxVotes: number;
      /** Two voters who agree are enough. */
      readonly gate: boolean;
    }
);

const TEMPERATURE = 0.3;
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

/** Asks until the vote is over; those that are needed anyway at once. */
async function votedMove(
  { subject }: Trial,
  step: Step,
  { aheadBy, maxVotes, gate }: Extract<HanoiOptions, { mode: 'solve' }>,
  signal: AbortSignal,
): Promise<Made> {
  const accepting = gate ? { gate: USUAL_GATE } : {};
  const terms = { aheadBy, most: maxVotes, maxFlagged: USUAL_MAX_FLAGGED, ...accepting };
  const ballots: Ballot[] = [];
  let ms = 0;
  let verdict = verdictOf(ballots, terms);
  while (verdict.kind === 'ask') {
    const asked = Array.from({ length: verdict.more }, () => vote(subject, step, signal));
    const cast = await Promise.all(asked);
    ms += Math.max(...cast.map((one) => one.ms));
    ballots.push(...cast.map(({ answer }) => ballotOf(answer)));
    verdict = verdictOf(ballots, terms);
  }
  const wanted = moveText(step.move);
  const { votes, flagged } = verdict.figures;
  const rightVotes = ballots.filter((one) => one.kind === 'vote' && one.key === wanted).length;
  const accepted = verdict.kind === 'won' && verdict.by === 'gate' ? 1 : 0;
  const counts = { votes, flagged, rightVotes, accepted };
  if (verdict.kind === 'won') {
    return { state: verdict.key === wanted ? 'right' : 'wrong', got: verdict.key, ms, counts };
  }
  const why = verdict.why === 'tie' ? 'a tie' : verdict.why;
  return { state: 'undecided', got: `${why}: ${verdict.leaders.join('; ')}`, ms, counts };
}

const ballotOf = (answer: MoveAnswer): Ballot =>
  answer.kind === 'move' ? { kind: 'vote', key: moveText(answer.move) } : answer;

function calibrated(items: readonly EvalItem[], steps: number) {
  const { rate, total } = scoreOf(items);
  const answered = items.filter(({ state }) => state === 'right' || state === 'wrong');
  return {
    figures: known({
      'optimal steps': steps,
      'red-flag rate': total === 0 ? undefined : sumOf(answered, 'flagged') / total,
      'median seconds': medianSeconds(answered.map(({ ms }) => ms)),
      'voters for 99.9 % of a step (majority)':
        rate === undefined ? undefined : votersFor(rate, VOTE_TARGET),
      'lead k for 99.9 % of the whole solution':
        rate === undefined ? undefined : leadFor(rate, steps, VOTE_TARGET),
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
      'steps accepted by the pilot voters': sumOf(decided, 'accepted'),
      'undecided steps': decided.filter(({ state }) => state === 'undecided').length,
      'median seconds a step': medianSeconds(decided.map(({ ms }) => ms)),
    }),
    plots: [
      ...barsOf('right steps by part of the solution', items),
      ...(errorFree.length > 1 ? [plot] : []),
    ],
  };
}
