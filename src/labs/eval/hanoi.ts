// The Tower of Hanoi benchmark: rules, shortest solution, prompts and answer parsing; `calibrate`
// measures single moves, `solve` whole solutions by voting. Pegs are 1, 2 and 3 everywhere.

import {
  type Ballot,
  type RedFlag,
  VOTE_TARGET,
  verdictOf,
  votersFor,
} from '../../features/subagents/rules/vote.ts';
import { USUAL_GATE, USUAL_MAX_FLAGGED } from '../../features/subagents/settings.ts';
import { leadFor, mean, medianSeconds, plain } from './rules/grade.ts';
import { barsOf, type EvalItem, known, lineOf, scoreOf, sumOf } from './rules/result.ts';
import type { Benchmark, Graded, Subject } from './run-eval.ts';

export const PEGS = [1, 2, 3] as const;
type Peg = (typeof PEGS)[number];
export type Move = { readonly disk: number; readonly from: Peg; readonly to: Peg };

/** The disks on each peg from the bottom up; 1 is the smallest. */
export type Towers = Readonly<Record<Peg, readonly number[]>>;

const GOAL: Peg = 3;
/** The chance of a random move from one peg to another. */
const HANOI_CHANCE = 1 / (PEGS.length * (PEGS.length - 1));
/** A longer answer is usually off track. */
const MAX_ANSWER_CHARS = 1200;

export function startOf(disks: number): Towers {
  return { 1: Array.from({ length: disks }, (_, at) => disks - at), 2: [], 3: [] };
}

/** Undefined where the rules forbid it. */
export function moved(towers: Towers, { disk, from, to }: Move): Towers | undefined {
  const top = towers[from].at(-1);
  const under = towers[to].at(-1);
  if (from === to || top !== disk || (under !== undefined && under < disk)) return undefined;
  return { ...towers, [from]: towers[from].slice(0, -1), [to]: [...towers[to], disk] };
}

/** The next move of the shortest way to the goal, from any state; undefined at the goal. */
export function bestMove(towers: Towers): Move | undefined {
  const disks = PEGS.reduce((sum, peg) => sum + towers[peg].length, 0);
  let target: Peg = GOAL;
  let best: Move | undefined;
  for (let disk = disks; disk >= 1; disk -= 1) {
    const from = PEGS.find((peg) => towers[peg].includes(disk)) ?? target;
    if (from === target) continue;
    best = { disk, from, to: target };
    // All smaller disks have to be moved aside first.
    const aside: Peg = PEGS.find((peg) => peg !== from && peg !== target) ?? target;
    target = aside;
  }
  return best;
}

export type Step = { readonly towers: Towers; readonly move: Move };

/** All 2^n - 1 steps. */
export function solutionOf(disks: number): readonly Step[] {
  const steps: Step[] = [];
  let towers = startOf(disks);
  for (let move = bestMove(towers); move !== undefined; move = bestMove(towers)) {
    steps.push({ towers, move });
    towers = moved(towers, move) ?? towers;
  }
  return steps;
}

/** `count` steps, evenly spread over the solution; with repetitions where it has fewer. */
export function spreadSteps(steps: readonly Step[], count: number): readonly Step[] {
  const at = (index: number) => steps[Math.floor((index * steps.length) / count) % steps.length];
  return Array.from({ length: count }, (_, index) => at(index)).filter(
    (step) => step !== undefined,
  );
}

const HANOI_SYSTEM = `You solve the Tower of Hanoi. There are three pegs: 1, 2 and 3. One move takes the top disk of a peg and puts it on top of another peg; a disk may never lie on a smaller one. Disk 1 is the smallest. The goal: all disks on peg ${GOAL}, in the fewest moves.
You are shown one state and say the next move of the shortest solution, in one line of this form and with nothing behind it:
move disk D from peg A to peg B`;

export function hanoiPrompt(towers: Towers): string {
  const lines = PEGS.map((peg) => {
    const disks = towers[peg].length === 0 ? 'empty' : towers[peg].join(', ');
    return `peg ${peg}, from the bottom up: ${disks}`;
  });
  return `${lines.join('\n')}\nWhat is the next move?`;
}

type MoveAnswer =
  | { readonly kind: 'move'; readonly move: Move }
  /** Not a vote: the answer is unreliable. */
  | { readonly kind: 'flagged'; readonly flag: RedFlag };

const IN_WORDS =
  /disk\s*#?\s*(\d+)\s*(?:,|\()?\s*(?:on|which is on|currently on)?\s*(?:from)\s*(?:the\s*)?(?:peg|rod|tower)?\s*#?\s*(\d+)\s*(?:to|onto|->|→)\s*(?:the\s*)?(?:peg|rod|tower)?\s*#?\s*(\d+)/g;
const IN_SHORT = /\bdisk\s*(\d+)\s*:?\s*(?:peg\s*)?(\d+)\s*(?:->|→|to)\s*(?:peg\s*)?(\d+)/g;
const AS_LIST = /\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]/g;

/** Reads the last move that an answer names; `isCut`: the answer was cut off at its limit. */
export function readMove(answer: string, isCut = false): MoveAnswer {
  const text = plain(answer);
  if (text === '') return { kind: 'flagged', flag: 'empty' };
  if (isCut || answer.length > MAX_ANSWER_CHARS) return { kind: 'flagged', flag: 'too long' };
  const found = [IN_WORDS, IN_SHORT, AS_LIST].flatMap((pattern) => [...text.matchAll(pattern)]);
  const last = found.sort((one, other) => one.index - other.index).at(-1);
  const [disk = 0, from = 0, to = 0] = (last ?? []).slice(1).map(Number);
  if (disk < 1 || !isPeg(from) || !isPeg(to) || from === to) {
    return { kind: 'flagged', flag: 'malformed' };
  }
  return { kind: 'move', move: { disk, from, to } };
}

const isPeg = (value: number): value is Peg => PEGS.some((peg) => peg === value);

export const moveText = ({ disk, from, to }: Move) =>
  `move disk ${disk} from peg ${from} to peg ${to}`;

// The Tower of Hanoi: the rate of right single moves (`calibrate`), and the error-free part of a
// whole solution with a vote on each move that an answer wins by a lead of k (`solve`).

type Common = { readonly seed: number; readonly disks: number };
type Calibrating = { readonly samples: number };
type Solving = {
  readonly aheadBy: number;
  readonly maxVotes: number;
  /** Two voters that agree suffice. */
  readonly gate: boolean;
};
export type HanoiFlags = Common & Calibrating & Solving;
type HanoiOptions = Common &
  (({ readonly mode: 'calibrate' } & Calibrating) | ({ readonly mode: 'solve' } & Solving));

const TEMPERATURE = 0.3;
const PARTS = 5;

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
    *tasks() {
      for (const [index, step] of asked.entries()) {
        yield {
          id: `${index + 1}`,
          group: partOf(index, planned),
          wanted: moveText(step.move),
          run: ({ subject }, signal) =>
            options.mode === 'calibrate'
              ? singleMove(subject, step, signal)
              : votedMove(subject, step, options, signal),
        };
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

async function singleMove(subject: Subject, step: Step, signal: AbortSignal): Promise<Graded> {
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

/** Asks until the vote is decided; voters that are needed in any case are asked concurrently. */
async function votedMove(
  subject: Subject,
  step: Step,
  { aheadBy, maxVotes, gate }: Solving,
  signal: AbortSignal,
): Promise<Graded> {
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
      ...lineOf('error-free steps', 'step', 'share', right),
    ],
  };
}
