// What the HTTP API answers about workflows and subagents; the page has its types from here.

import { z } from 'zod';

const moment = z.number().describe('Epoch milliseconds.');

const shownRun = z.object({
  id: z.string(),
  parent: z.string().exactOptional().describe('The run that started it; absent at the top.'),
  kind: z.enum(['workflow', 'task', 'pipeline', 'loop']),
  label: z.string(),
  state: z.enum(['running', 'waiting', 'done', 'failed', 'undecided', 'cancelled']),
  startedAt: moment,
  endedAt: moment.exactOptional(),
  tokens: z.number().describe('Without those of the runs below it.'),
  micros: z.number().describe('Cost in millionths of the currency; 0 if no price is known.'),
  doing: z.string().exactOptional().describe('What it does now; absent after its end.'),
  asked: z.string().describe('Its task, or the input of the workflow.'),
  result: z.string().exactOptional().describe('Its answer, or why there is none.'),
  canStop: z.boolean().describe('Whether it runs, and not as a part of a pipeline or loop.'),
  session: z.string().describe('The conversation or job that it was started from.'),
  name: z.string().exactOptional().describe('Of that conversation.'),
});
export const runList = z.object({
  currency: z.string(),
  runs: z
    .array(shownRun)
    .describe('All that go on, and the newest that ended within 7 days; newest first.'),
});
export const stoppedRuns = z.object({
  stopped: z.array(z.string()).describe('Their ids: the run and those below it that were running.'),
});

export type ShownRun = z.output<typeof shownRun>;
export type RunList = z.output<typeof runList>;

/** Ids of the run and of all below it, the run first. */
export function branchOf(
  id: string,
  runs: readonly Pick<ShownRun, 'id' | 'parent'>[],
): readonly string[] {
  const branch = new Set([id]);
  for (let size = 0; size < branch.size; ) {
    size = branch.size;
    for (const run of runs) {
      if (run.parent !== undefined && branch.has(run.parent)) branch.add(run.id);
    }
  }
  return [...branch];
}
