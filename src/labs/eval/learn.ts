// The learning benchmark: a sequence of tasks with unknown rules, where feedback on earlier tasks
// helps with later ones. The second half shows what was learnt.

import { textTokens } from '../../agent/rules/tokens.ts';
import {
  choiceSaid,
  forwardTransfer,
  mean,
  numberSaid,
  seeded,
  surpriseRate,
  wordsOf,
} from './rules/grade.ts';
import { type EvalItem, known, lineOf } from './rules/result.ts';
import type { Benchmark, Graded, Question, Subject, Trial } from './run-eval.ts';

export const LEARN_FAMILIES = ['arithmetic', 'fact-retrieval', 'tool-chain'] as const;
export type LearnFamily = (typeof LEARN_FAMILIES)[number];

type LearnTask = {
  readonly question: string;
  readonly wanted: string;
  /** The feedback after the answer: the right answer, and why. */
  readonly lesson: string;
  /** By path relative to the workspace; only for chains. */
  readonly files: Readonly<Record<string, string>>;
  isRight(answer: string): boolean;
};

type LearnWish = {
  readonly family: LearnFamily;
  readonly seed: number;
  readonly tasks: number;
  /** Number of files between the first one and the value, for chains. */
  readonly depth: number;
};

const MODULUS = 10;
const OPTIONS = 4;
const SIGNS = ['#', '@', '~'] as const;
const PEOPLE = wordsOf('Alder Birch Cedar Dogwood Elm Fir Ginkgo Hazel Ivy Juniper');
const COLOURS = wordsOf('amber cobalt crimson ivory jade lilac ochre scarlet teal umber');

/** The rate of guessing; next to zero for the other family. */
const CHANCES: Partial<Record<LearnFamily, number>> = {
  arithmetic: 1 / MODULUS,
  'fact-retrieval': 1 / OPTIONS,
};

export const learnTasks = (wish: LearnWish): readonly LearnTask[] =>
  ({ arithmetic, 'fact-retrieval': facts, 'tool-chain': chains })[wish.family](wish);

function arithmetic({ seed, tasks }: LearnWish): readonly LearnTask[] {
  const draw = seeded(seed, 'arithmetic');
  const rules = new Map(
    SIGNS.map((sign) => [
      sign,
      { left: 2 + draw.below(6), right: 2 + draw.below(6), plus: 1 + draw.below(8) },
    ]),
  );
  return Array.from({ length: tasks }, () => {
    const sign = draw.pick(SIGNS);
    const { left, right, plus } = rules.get(sign) ?? { left: 1, right: 1, plus: 0 };
    const one = 1 + draw.below(9);
    const other = 1 + draw.below(9);
    const value = (left * one + right * other + plus) % MODULUS;
    return {
      question: `What is ${one} ${sign} ${other}? Answer with one digit.`,
      wanted: String(value),
      lesson: `a ${sign} b is the last digit of ${left}·a + ${right}·b + ${plus}, so ${one} ${sign} ${other} is ${value}.`,
      files: {},
      isRight: (answer) => numberSaid(answer) === value,
    };
  });
}

function facts({ seed, tasks }: LearnWish): readonly LearnTask[] {
  const draw = seeded(seed, 'facts');
  const known = new Map(PEOPLE.map((person) => [person, draw.pick(COLOURS)]));
  return Array.from({ length: tasks }, () => {
    const person = draw.pick(PEOPLE);
    const colour = known.get(person) ?? COLOURS[0];
    const wrong = draw.shuffled(COLOURS.filter((one) => one !== colour)).slice(0, OPTIONS - 1);
    const options = draw.shuffled([colour, ...wrong]);
    return {
      question: `Which colour does house ${person} have: ${options.join(', ')}? Answer with the colour.`,
      wanted: colour,
      lesson: `House ${person} is ${colour}.`,
      files: {},
      isRight: (answer) => choiceSaid(answer, COLOURS) === colour,
    };
  });
}

const CHAIN_FOLDER = 'chains';

/**
 * Where a reference points follows a rule that can be learnt; without it the agent has to search.
 */
function chains({ seed, tasks, depth }: LearnWish): readonly LearnTask[] {
  const draw = seeded(seed, 'chains');
  const shelves = draw.shuffled(COLOURS).slice(0, SIGNS.length);
  return Array.from({ length: tasks }, (_, task) => {
    const folder = `${CHAIN_FOLDER}/${task + 1}`;
    const value = 100 + draw.below(900);
    const files: Record<string, string> = {};
    let path = `${folder}/start.txt`;
    for (let hop = 0; hop < depth; hop += 1) {
      const kind = draw.below(SIGNS.length);
      const number = 10 * (hop + 1) + draw.below(10);
      files[path] = `Go on with ${'XYZ'.charAt(kind)}${number}.\n`;
      path = `${folder}/${shelves[kind] ?? shelves[0]}/${number}.txt`;
    }
    files[path] = `The value is ${value}.\n`;
    const rule = shelves.map((shelf, kind) => `${'XYZ'.charAt(kind)} means the folder ${shelf}`);
    return {
      question: `In the workspace, ${folder}/start.txt begins a chain of files. Each names a reference to the next file of the same chain, all of them below ${folder}/. Follow it to its end and answer with the value that stands there.`,
      wanted: String(value),
      lesson: `The value is ${value}. In references ${rule.join(', ')}, and the number is the name of the file: X10 of chain 7 would be ${CHAIN_FOLDER}/7/${shelves[0] ?? ''}/10.txt.`,
      files,
      isRight: (answer) => numberSaid(answer) === value,
    };
  });
}

const LEARN_SYSTEM =
  'You are asked short questions, one after the other, about things made up for the occasion. After each answer you are told whether it was right, and what would have been. Use what you were told before; where you cannot know, guess. Answer in as few words as you can.';

// Runs the tasks in a row and includes the feedback in the following prompts. Learning shows in the
// second half, and in the number of tries per task.

export type LearnOptions = LearnWish & {
  /** Tries per task, for families without tools. */
  readonly tries: number;
};

type Said = Question['said'][number];

const TEMPERATURE = 0;

export function learn(options: LearnOptions): Benchmark {
  const { seed, family, tasks: planned, depth, tries } = options;
  const chance = CHANCES[family];
  const isChain = family === 'tool-chain';
  return {
    benchmark: 'learn',
    variant: family,
    seed,
    options: { tasks: planned, ...(isChain ? { depth } : { tries }) },
    planned,
    ...(chance === undefined ? {} : { chance }),
    *tasks() {
      const course = new Course(tries);
      for (const [index, task] of learnTasks(options).entries()) {
        const group = index < Math.floor(planned / 2) ? 'first half' : 'second half';
        yield {
          ...{ id: `${index + 1}`, group, wanted: task.wanted },
          run: (trial, signal) =>
            isChain ? course.follow(task, trial, signal) : course.ask(task, trial.subject, signal),
        };
      }
    },
    summary: summaryOf,
  };
}

/** The messages and lessons so far. */
class Course {
  readonly #tries: number;
  #said: readonly Said[] = [];
  #lesson = '';

  constructor(tries: number) {
    this.#tries = tries;
  }

  /** Asks the model alone, in one conversation with as much of the earlier messages as fits. */
  async ask(task: LearnTask, subject: Subject, signal: AbortSignal): Promise<Graded> {
    let ms = 0;
    const given: string[] = [];
    let isRight = false;
    while (!isRight && given.length < this.#tries) {
      const whole: readonly Said[] = [...this.#said, { role: 'user', text: this.#textOf(task) }];
      const said = fitting(whole, subject.contextTokens - subject.maxTokens);
      const question = { system: LEARN_SYSTEM, said, temperature: TEMPERATURE };
      const reply = await subject.ask(question, signal);
      ms += reply.ms;
      given.push(reply.text);
      isRight = task.isRight(reply.text);
      this.#said = [...said, { role: 'assistant', text: reply.text === '' ? '-' : reply.text }];
      this.#learn(task, isRight);
    }
    const counts = { iterations: given.length, solved: isRight ? 1 : 0 };
    const state = isRight && given.length === 1 ? 'right' : 'wrong';
    return { state, got: given[0] ?? '', ms, counts };
  }

  /**
   * Runs the whole agent in one conversation; it also has the memory that it built with its tools.
   */
  async follow(task: LearnTask, trial: Trial, signal: AbortSignal): Promise<Graded> {
    const bench = await trial.workbench();
    await bench.write(task.files);
    const made = await bench.turn('learn', this.#textOf(task), signal);
    const isRight = task.isRight(made.got);
    this.#learn(task, isRight);
    const iterations = made.counts['model calls'] ?? 0;
    const counts = { ...made.counts, iterations, solved: isRight ? 1 : 0 };
    return { ...made, state: isRight ? 'right' : 'wrong', counts };
  }

  #textOf({ question }: LearnTask): string {
    return this.#lesson === '' ? question : `${this.#lesson}\n\n${question}`;
  }

  #learn({ lesson }: LearnTask, isRight: boolean): void {
    this.#lesson = `${isRight ? 'Right' : 'Wrong'}. ${lesson}`;
  }
}

/** The newest messages that fit; a question and its answer stay together. */
function fitting(said: readonly Said[], tokens: number): readonly Said[] {
  let from = 0;
  const size = () =>
    textTokens(
      said
        .slice(from)
        .map(({ text }) => text)
        .join('\n'),
    );
  while (from + 2 < said.length && size() > tokens) from += 2;
  return said.slice(from);
}

function summaryOf(items: readonly EvalItem[]) {
  const answered = items.filter(({ state }) => state !== 'error');
  const iterations = answered.map(({ counts }) => counts['iterations'] ?? 1);
  const right = answered.map(({ state }) => state === 'right');
  return {
    figures: known({
      'solved in the end': mean(answered.map(({ counts }) => counts['solved'] ?? 0)),
      'forward transfer': forwardTransfer(right),
      'surprise rate': surpriseRate(iterations),
      'iterations a task': mean(iterations),
    }),
    plots: [
      ...lineOf('right at once', 'task', 'share', right.map(Number)),
      ...lineOf('iterations', 'task', 'iterations', iterations),
    ],
  };
}
