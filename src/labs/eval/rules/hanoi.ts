// The tower of Hanoi as a test of many small steps: its rules, its shortest solution, how a step is
// asked for, and how the answer is read. The pegs are 1, 2 and 3 everywhere.

import type { RedFlag } from '../../../features/subagents/rules/vote.ts';
import { plain } from './grade.ts';

export const PEGS = [1, 2, 3] as const;
export type Peg = (typeof PEGS)[number];
export type Move = { readonly disk: number; readonly from: Peg; readonly to: Peg };

/** On each peg the disks from the bottom up; 1 is the smallest. */
export type Towers = Readonly<Record<Peg, readonly number[]>>;

const GOAL: Peg = 3;
/** A move that is picked without looking: from one peg to another. */
export const HANOI_CHANCE = 1 / (PEGS.length * (PEGS.length - 1));
/** Whoever writes more has lost its way, as a rule. */
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
    // Everything smaller has to be out of the way first.
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

/** `count` of them, evenly spread over the solution; all where there are no more, several times then. */
export function spreadSteps(steps: readonly Step[], count: number): readonly Step[] {
  const at = (index: number) => steps[Math.floor((index * steps.length) / count) % steps.length];
  return Array.from({ length: count }, (_, index) => at(index)).filter(
    (step) => step !== undefined,
  );
}

export const HANOI_SYSTEM = `You solve the Tower of Hanoi. There are three pegs: 1, 2 and 3. One move takes the top disk of a peg and puts it on top of another peg; a disk may never lie on a smaller one. Disk 1 is the smallest. The goal: all disks on peg ${GOAL}, in the fewest moves.
You are shown one state and say the next move of the shortest solution, in one line of this form and with nothing behind it:
move disk D from peg A to peg B`;

export function hanoiPrompt(towers: Towers): string {
  const lines = PEGS.map((peg) => {
    const disks = towers[peg].length === 0 ? 'empty' : towers[peg].join(', ');
    return `peg ${peg}, from the bottom up: ${disks}`;
  });
  return `${lines.join('\n')}\nWhat is the next move?`;
}

export type MoveAnswer =
  | { readonly kind: 'move'; readonly move: Move }
  /** No vote: whoever answers so is not to be relied on. */
  | { readonly kind: 'flagged'; readonly flag: RedFlag };

const IN_WORDS =
  /disk\s*#?\s*(\d+)\s*(?:,|\()?\s*(?:on|which is on|currently on)?\s*(?:from)\s*(?:the\s*)?(?:peg|rod|tower)?\s*#?\s*(\d+)\s*(?:to|onto|->|→)\s*(?:the\s*)?(?:peg|rod|tower)?\s*#?\s*(\d+)/g;
const IN_SHORT = /\bdisk\s*(\d+)\s*:?\s*(?:peg\s*)?(\d+)\s*(?:->|→|to)\s*(?:peg\s*)?(\d+)/g;
const AS_LIST = /\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]/g;

/** Reads the last move an answer names; `isCut`: the model ran out of room. */
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
