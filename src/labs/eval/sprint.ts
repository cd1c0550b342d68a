// Mixed tasks for the whole agent with its tools, in a workspace of their own: what came of them is
// graded, and what they took is counted.

import { askAgent, attempt } from './ask-agent.ts';
import type { Benchmark, Trial } from './eval.ts';
import { barsOf, type EvalItem, known, scoreOf, sumOf } from './rules/result.ts';
import { gradeSprint, type SprintTask, sprintTasks } from './rules/sprint.ts';
import { mean, medianSeconds } from './rules/stats.ts';

export type SprintOptions = { readonly seed: number; readonly tasks: number };

export function sprint({ seed, tasks: planned }: SprintOptions): Benchmark {
  const tasks = sprintTasks(seed, planned);
  return {
    benchmark: 'sprint',
    variant: 'tools',
    seed,
    options: { tasks: planned },
    planned,
    async *run(trial, signal) {
      for (const [index, task] of tasks.entries()) yield await runTask(trial, task, index, signal);
    },
    summary(items) {
      const answered = items.filter(({ state }) => state !== 'error');
      const rates = Map.groupBy(items, ({ group }) => group);
      const tiers = [...rates].map(
        ([tier, some]) => [`right: ${tier}`, scoreOf(some).rate] as const,
      );
      const each = (name: string) => mean(answered.map(({ counts }) => counts[name] ?? 0));
      return {
        figures: known({
          ...Object.fromEntries(tiers),
          'median seconds a task': medianSeconds(answered.map(({ ms }) => ms)),
          'tokens a task': each('tokens'),
          'model calls a task': each('model calls'),
          'tool calls a task': each('tool calls'),
          'failed tool calls': sumOf(answered, 'failed tool calls'),
        }),
        plots: barsOf('right by tier', items),
      };
    },
  };
}

async function runTask(
  trial: Trial,
  task: SprintTask,
  index: number,
  signal: AbortSignal,
): Promise<EvalItem> {
  const { wanted } = task;
  const folder = `task-${index + 1}`;
  const named = {
    id: `${index + 1} ${task.tier}`,
    group: task.tier,
    wanted: 'answer' in wanted ? wanted.answer : `${wanted.file.path}: ${wanted.file.text.trim()}`,
  };
  return attempt(named, signal, async () => {
    const bench = await trial.workbench();
    await bench.write(task.files);
    const { report, ...made } = await askAgent(trial, folder, task.instruction, signal);
    const { isPassed, why } = gradeSprint(task, report.answer, await bench.read(folder));
    return { ...made, state: isPassed ? 'right' : 'wrong', got: `${why}: ${report.answer}` };
  });
}
