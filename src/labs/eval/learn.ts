// Learning: tasks in a row, with feedback after each that the next ones are asked with. What was learnt
// shows in the second half, and in how many tries a task takes.

import { textTokens } from '../../agent/rules/tokens.ts';
import { askAgent, attempt } from './ask-agent.ts';
import type { Benchmark, Question, Trial } from './eval.ts';
import {
  chanceOf,
  feedbackOn,
  LEARN_SYSTEM,
  type LearnFamily,
  type LearnTask,
  learnTasks,
} from './rules/learn.ts';
import { type EvalItem, type EvalPlot, known } from './rules/result.ts';
import { forwardTransfer, mean, surpriseRate, windows } from './rules/stats.ts';

export type LearnOptions = {
  readonly seed: number;
  readonly family: LearnFamily;
  readonly tasks: number;
  /** Files of a chain. */
  readonly depth: number;
  /** Tries for each task. */
  readonly tries: number;
};

type Said = Question['said'][number];

const TEMPERATURE = 0;
const WINDOW = 5;

export function learn(options: LearnOptions): Benchmark {
  const { seed, family, tasks: planned, depth, tries } = options;
  const tasks = learnTasks(options);
  const chance = chanceOf(family);
  const isChain = family === 'tool-chain';
  return {
    benchmark: 'learn',
    variant: family,
    seed,
    options: { tasks: planned, ...(isChain ? { depth } : { tries }) },
    planned,
    ...(chance === undefined ? {} : { chance }),
    run: (trial, signal) =>
      isChain ? followChains(trial, tasks, signal) : converse(trial, tasks, tries, signal),
    summary: summaryOf,
  };
}

/** One conversation: everything that was said before is asked with, as far as it fits. */
async function* converse(
  { subject }: Trial,
  tasks: readonly LearnTask[],
  tries: number,
  signal: AbortSignal,
): AsyncGenerator<EvalItem, void, void> {
  let said: readonly Said[] = [];
  let lesson = '';
  for (const [index, task] of tasks.entries()) {
    const named = { id: `${index + 1}`, group: halfOf(index, tasks.length), wanted: task.wanted };
    yield await attempt(named, signal, async () => {
      let ms = 0;
      let first = '';
      let isRight = false;
      let taken = 0;
      while (!isRight && taken < tries) {
        const text = [lesson, task.question].filter((part) => part !== '').join('\n\n');
        const whole: readonly Said[] = [...said, { role: 'user', text }];
        const asked = fitting(whole, subject.contextTokens - subject.maxTokens);
        const reply = await subject.ask(
          { system: LEARN_SYSTEM, said: asked, temperature: TEMPERATURE },
          signal,
        );
        taken += 1;
        ms += reply.ms;
        isRight = task.isRight(reply.text);
        if (taken === 1) first = reply.text;
        said = [...asked, { role: 'assistant', text: reply.text === '' ? '-' : reply.text }];
        lesson = feedbackOn(task, isRight);
      }
      const state = isRight && taken === 1 ? 'right' : 'wrong';
      return { state, got: first, ms, counts: { iterations: taken, solved: isRight ? 1 : 0 } };
    });
  }
}

/** The newest of it; a question and its answer go together. */
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

/** The whole agent, in one conversation: it also has what its memory learnt from its tools. */
async function* followChains(
  trial: Trial,
  tasks: readonly LearnTask[],
  signal: AbortSignal,
): AsyncGenerator<EvalItem, void, void> {
  let lesson = '';
  for (const [index, task] of tasks.entries()) {
    const named = { id: `${index + 1}`, group: halfOf(index, tasks.length), wanted: task.wanted };
    const bench = await trial.workbench();
    await bench.write(task.files);
    yield await attempt(named, signal, async () => {
      const text = [lesson, task.question].filter((part) => part !== '').join('\n\n');
      const { report, ...made } = await askAgent(trial, 'learn', text, signal);
      const isRight = task.isRight(report.answer);
      lesson = feedbackOn(task, isRight);
      const counts = { ...made.counts, iterations: report.modelCalls, solved: isRight ? 1 : 0 };
      return { ...made, state: isRight ? 'right' : 'wrong', counts };
    });
  }
}

const halfOf = (index: number, all: number) =>
  index < Math.floor(all / 2) ? 'first half' : 'second half';

function summaryOf(items: readonly EvalItem[]) {
  const answered = items.filter(({ state }) => state !== 'error');
  const iterations = answered.map(({ counts }) => counts['iterations'] ?? 1);
  const right = answered.map(({ state }) => state === 'right');
  const line = (title: string, yLabel: string, values: readonly number[]): readonly EvalPlot[] =>
    values.length < 2
      ? []
      : [
          {
            kind: 'line',
            ...{ title, yLabel, xLabel: 'task' },
            points: windows(values, WINDOW).map((y, at) => ({ x: at + WINDOW, y })),
          },
        ];
  return {
    figures: known({
      'solved in the end': mean(answered.map(({ counts }) => counts['solved'] ?? 0)),
      'forward transfer': forwardTransfer(right),
      'surprise rate': surpriseRate(iterations),
      'iterations a task': mean(iterations),
    }),
    plots: [
      ...line(`right at once, means of ${WINDOW}`, 'share', right.map(Number)),
      ...line(`iterations, means of ${WINDOW}`, 'iterations', iterations),
    ],
  };
}
