// The collection of the runs of subagents.

import type { OpenRows } from '../../kernel/rows.ts';
import { openWork } from '../../kernel/work-rows.ts';
import { number, object, objects, rowShape, text } from '../../lib/json/json.ts';
import type { HelperRun } from './rules/subagent.ts';

const RUN = rowShape<HelperRun>({
  ...{ id: text, label: text, plan: object, parent: object, depth: number, terms: object },
  ...{ attempt: number, answers: objects, startedAt: number, state: text, telling: text },
});

export type SubagentRows = ReturnType<typeof openSubagents>;

/** `runs`: oldest first. */
export function openSubagents(rows: OpenRows) {
  const { all: runs, ...others } = openWork(rows, {
    shape: RUN,
    left: rowShape<Pick<HelperRun, 'id' | 'parent'>>({ id: text, parent: object }),
    leaves: ({ id, parent }) => ({ id, parent }),
    ...{ scope: 'subagents', prefix: 'run:' },
    order: (one, other) => one.startedAt - other.startedAt,
  });
  return { runs, ...others };
}

/** Removes runs that ended before then (epoch milliseconds). */
export async function removeEndedRuns({ runs, remove }: SubagentRows, before: number) {
  const isOld = ({ state, endedAt, startedAt }: HelperRun) =>
    state !== 'running' && (endedAt ?? startedAt) < before;
  for (const { id } of (await runs.list()).filter(isOld)) await remove(id, isOld);
}
