// The collections of subagents: their runs, and after a run was removed whose it was, as long as its
// conversation is on disk.

import { jsonRows, type OpenRows, type Rows } from '../../kernel/rows.ts';
import { number, object, objects, rowShape, text } from '../../lib/json/json.ts';
import type { HelperRun } from './rules/subagent.ts';

type RemovedRun = Pick<HelperRun, 'id' | 'parent'>;

export type SubagentRows = {
  /** Oldest first. */
  readonly runs: Rows<HelperRun>;
  readonly removed: Rows<RemovedRun>;
};

const RUN = rowShape<HelperRun>({
  ...{ id: text, label: text, plan: object, parent: object, depth: number, terms: object },
  ...{ attempt: number, answers: objects, startedAt: number, state: text, telling: text },
});
const REMOVED = rowShape<RemovedRun>({ id: text, parent: object });
const SCOPE = 'subagents';

export const openSubagents = (rows: OpenRows): SubagentRows => ({
  runs: rows({
    ...jsonRows(RUN),
    ...{ scope: SCOPE, prefix: 'run:' },
    order: (one, other) => one.startedAt - other.startedAt,
  }),
  removed: rows({ ...jsonRows(REMOVED), scope: SCOPE, prefix: 'gone:' }),
});

/** Runs that ended before then (epoch milliseconds); whose they were stays known. */
export async function removeEndedRuns(
  { runs, removed }: SubagentRows,
  before: number,
): Promise<void> {
  const isOld = ({ state, endedAt, startedAt }: HelperRun) =>
    state !== 'running' && (endedAt ?? startedAt) < before;
  for (const { id } of (await runs.list()).filter(isOld)) {
    await runs.change(
      id,
      (run) => (run !== undefined && isOld(run) ? 'remove' : undefined),
      ({ parent }) => [removed.write(id, { id, parent })],
    );
  }
}
