// What the benchmarks decide by values alone: their tasks, what counts as right, what is computed.

import { describe, expect, it, test } from 'vitest';
import { votersFor } from '../../src/features/subagents/rules/vote.ts';
import {
  bestMove,
  hanoiPrompt,
  moved,
  moveText,
  PEGS,
  readMove,
  solutionOf,
  spreadSteps,
  startOf,
} from '../../src/labs/eval/hanoi.ts';
import { LEARN_FAMILIES, learnTasks } from '../../src/labs/eval/learn.ts';
import {
  choiceSaid,
  forwardTransfer,
  isExact,
  leadFor,
  listSaid,
  median,
  numberSaid,
  seeded,
  surpriseRate,
  wilson,
  windows,
} from '../../src/labs/eval/rules/grade.ts';
import {
  aggregateQuestions,
  corpusOf,
  gradeNeedles,
  needleQuestion,
  sentenceOf,
} from '../../src/labs/eval/rules/haystack.ts';
import { gradeSprint, SPRINT_TIERS, sprintTasks } from '../../src/labs/eval/sprint.ts';

describe('a number in an answer', () => {
  test.each([
    ['5', 5],
    ['15', 15],
    ['**5**', 5],
    ['There are five bakers.', 5],
    ['five', 5],
    ['Twenty-one people work there.', 21],
    ['It weighs 5 kg, so 5kg.', 5],
    ['1,250 orders', 1250],
    ['17 + 25 = 42', 42],
    ['17 plus 25 is 42.', 42],
    ['There are 5 bakers among the 12 people in the text.', 5],
    ['I see 3 in one place and 4 in another.\nAnswer: 7', 7],
    ['Of 12 people, **5** are bakers', 5],
    ['None of them.', 0],
    ['nobody', 0],
    ['It could be 5 or 6.', undefined],
    ['It is A15.', undefined],
    ['', undefined],
  ])('%j says %s', (answer, number) => {
    expect(numberSaid(answer)).toBe(number);
  });
});

describe('a choice in an answer', () => {
  const options = ['baker', 'notary', 'tailor'];

  test.each([
    ['Baker.', 'baker'],
    ['She works as a BAKER in Lund.', 'baker'],
    ['Most of them are bakers', 'baker'],
    ['a baker or a notary', undefined],
    ['Not a baker; answer: notary', 'notary'],
    ['bakery', undefined],
    ['The answer is as follows.\n- notary', 'notary'],
  ])('%j names %s', (answer, choice) => {
    expect(choiceSaid(answer, options)).toBe(choice);
  });

  it('takes a list only whole', () => {
    expect(listSaid('- notary\n- baker', ['baker', 'notary'], options)).toEqual({
      ...{ right: 2, named: 2, wanted: 2 },
    });
    expect(listSaid('baker', ['baker', 'notary'], options)).toMatchObject({ right: 1, named: 1 });
    const whole = (answer: string) => isExact(listSaid(answer, ['baker', 'notary'], options));
    expect(whole('notary and baker')).toBe(true);
    expect(whole('notary')).toBe(false);
    // Whoever names everybody has found nobody.
    expect(whole(options.join(', '))).toBe(false);
  });
});

describe('the tower of Hanoi', () => {
  test.each([1, 3, 6])('%i disks are solved in 2^n - 1 legal moves', (disks) => {
    const steps = solutionOf(disks);
    expect(steps).toHaveLength(2 ** disks - 1);
    const end = steps.reduce((towers, { move }) => moved(towers, move) ?? towers, startOf(disks));
    expect(end[3]).toEqual(startOf(disks)[1]);
    expect(bestMove(end)).toBeUndefined();
  });

  it('asks with the same numbers of pegs as it understands', () => {
    const [first] = solutionOf(3);
    if (first === undefined) throw new Error('no step');
    for (const peg of PEGS) expect(hanoiPrompt(first.towers)).toContain(`peg ${peg},`);
    expect(readMove(moveText(first.move))).toEqual({ kind: 'move', move: first.move });
  });

  test.each([
    ['Move disk 1 from peg 1 to peg 3.'],
    ['First I look at peg 2. The next move is: **move disk 1 from peg 1 to peg 3**'],
    ['disk 1: 1 -> 3'],
    ['[1, 1, 3]'],
    ['I would move disk 2 from peg 1 to peg 2, but no: move disk 1 from rod 1 to rod 3'],
  ])('reads %j', (answer) => {
    expect(readMove(answer)).toEqual({ kind: 'move', move: { disk: 1, from: 1, to: 3 } });
  });

  test.each([
    ['empty', ''],
    ['malformed', 'I am not sure.'],
    ['malformed', 'move disk 1 from peg 0 to peg 2'],
    ['malformed', 'move disk 1 from peg 2 to peg 2'],
    ['too long', `${'so '.repeat(500)} move disk 1 from peg 1 to peg 3`],
  ])('flags what is %s', (flag, answer) => {
    expect(readMove(answer)).toEqual({ kind: 'flagged', flag });
  });

  it('spreads what it asks evenly over the solution', () => {
    const steps = solutionOf(4);
    expect(spreadSteps(steps, 5).map((step) => steps.indexOf(step))).toEqual([0, 3, 6, 9, 12]);
  });
});

describe('the figures', () => {
  it('bounds a rate by what was counted', () => {
    expect(wilson(10, 10).low).toBeCloseTo(0.722, 2);
    expect(wilson(10, 10).high).toBeCloseTo(1, 9);
    expect(wilson(0, 0)).toEqual({ low: 0, high: 1 });
  });

  it('knows how many voters a rate needs, and when voting cannot help', () => {
    expect([votersFor(1, 0.999), votersFor(0.98, 0.999), votersFor(0.5, 0.999)]).toEqual([
      ...[1, 5, undefined],
    ]);
    expect([leadFor(1, 31, 0.999), leadFor(0.9, 31, 0.999), leadFor(0.5, 31, 0.999)]).toEqual([
      ...[1, 5, undefined],
    ]);
  });

  it('tells what was learnt and what was a surprise', () => {
    expect(forwardTransfer([true, false, true, true])).toBe(2);
    expect(forwardTransfer([false, true])).toBeUndefined();
    expect(forwardTransfer([true, false, true])).toBe(0.5);
    expect(surpriseRate([1, 1, 1, 1, 6])).toBe(0.2);
    expect(surpriseRate([1, 1, 4])).toBe(0);
    expect(windows([0, 1, 1], 2)).toEqual([0.5, 1]);
    expect([median([3, 1, 2]), median([4, 1]), median([])]).toEqual([2, 2.5, undefined]);
  });
});

describe('the tasks', () => {
  it('are the same for the same seed and others for another', () => {
    const all = (seed: number) =>
      JSON.stringify([
        sprintTasks(seed, 6),
        corpusOf({ seed, chars: 3000, depthPercent: 50, needles: 2 }),
        LEARN_FAMILIES.map((family) => learnTasks({ family, seed, tasks: 5, depth: 2 })),
      ]);
    expect(all(1)).toBe(all(1));
    expect(all(1)).not.toBe(all(2));
    expect(seeded(7).shuffled([1, 2, 3, 4]).toSorted()).toEqual([1, 2, 3, 4]);
  });

  test.each([
    [2000, 0],
    [8000, 50],
    [30_000, 100],
  ])('a text of %i characters holds its fact at %i percent', (chars, depthPercent) => {
    const { text, needles } = corpusOf({ seed: 3, chars, depthPercent, needles: 1 });
    const [needle] = needles;
    if (needle === undefined) throw new Error('no needle');
    expect(Math.abs(text.length - chars)).toBeLessThan(200);
    const at = text.indexOf(sentenceOf(needle)) / text.length;
    expect(Math.abs(at * 100 - depthPercent)).toBeLessThan(depthPercent === 50 ? 8 : 16);
  });

  it('grades facts by who has which, in sentences too', () => {
    const { needles } = corpusOf({ seed: 3, chars: 2000, depthPercent: 0, needles: 2 });
    const [one, two] = needles;
    if (one === undefined || two === undefined) throw new Error('no needles');
    expect(needleQuestion(needles)).toContain(two.name);
    const good = `**${one.name}** is a ${one.job} who lives in ${one.city}; ${two.name}: ${two.job}, ${two.city}`;
    expect(gradeNeedles(good, needles)).toEqual({ right: 2, named: 2, wanted: 2 });
    const swapped = `${one.name}: ${two.job}, ${two.city}. The text says nothing of ${two.name}.`;
    expect(gradeNeedles(swapped, needles)).toEqual({ right: 0, named: 1, wanted: 2 });
  });

  it('takes each of several most common jobs, and no other', () => {
    const facts = ['baker', 'notary', 'baker', 'notary', 'tailor'].map((job, at) => ({
      ...{ name: `Person${at} Test`, job, city: 'Jena' },
    }));
    const common = aggregateQuestions(1, { text: '', facts, needles: [] }).find(
      ({ kind }) => kind === 'most common',
    );
    expect(['baker', 'The notary.', 'tailor'].map((answer) => common?.isRight(answer))).toEqual([
      ...[true, true, false],
    ]);
  });

  it('sprint: every tier can be passed, by what came of it, and fails where more was changed', () => {
    const tasks = sprintTasks(5, SPRINT_TIERS.length);
    expect(tasks.map(({ tier }) => tier)).toEqual([...SPRINT_TIERS]);
    for (const task of tasks) {
      const before = new Map(Object.entries(task.files));
      const answer = 'answer' in task.wanted ? `It is ${task.wanted.answer}.` : 'Done.';
      const after =
        'file' in task.wanted
          ? new Map([...before, [task.wanted.file.path, task.wanted.file.text] as const])
          : before;
      expect(gradeSprint(task, answer, after).isPassed).toBe(true);
      expect(gradeSprint(task, 'I do not know', before).isPassed).toBe(false);
      const [other] = [...after.keys()].filter(
        (path) => !('file' in task.wanted) || path !== task.wanted.file.path,
      );
      if (other === undefined) continue;
      expect(gradeSprint(task, answer, new Map([...after, [other, 'x']])).isPassed).toBe(false);
    }
  });
});
