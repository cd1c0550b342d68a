// Stored rows of workflow runs, with the definition of each. No row contains the value of a secret.

import { jsonRows, MARKS, type OpenRows } from '../../kernel/rows.ts';
import { number, object, rowShape, text } from '../../lib/json/json.ts';
import type { Redactor } from '../../lib/text/redact.ts';
import type { Definition } from './rules/definition.ts';
import { isOver, type WorkflowRun } from './rules/workflow.ts';

export type WorkflowRows = ReturnType<typeof openWorkflowRows>;

const RUN = rowShape<WorkflowRun>({
  ...{ id: text, workflow: text, starter: object, begunBy: text, state: object },
  ...{ startedAt: number, status: text, telling: text },
});
const DEFINITION = rowShape<Definition>({ workflow: object, capabilities: object });
const scope = 'workflows';

export const openWorkflowRows = (rows: OpenRows, redact: Redactor) => ({
  /** Oldest first. */
  runs: rows({ ...jsonRows(RUN, redact), scope, prefix: 'run:', order: byStart }),
  /** By the id of their run. */
  definitions: rows({ ...jsonRows(DEFINITION), scope, prefix: 'definition:' }),
  /** One for each run that has not ended, so that counting these reads no others. */
  open: rows({ ...MARKS, scope, prefix: 'open:' }),
});

/** Runs that have not ended, oldest first. */
export async function openRuns({ runs, open }: WorkflowRows): Promise<readonly WorkflowRun[]> {
  const found = await Promise.all((await open.entries()).map(([id]) => runs.get(id)));
  return found.filter((run) => run !== undefined).sort(byStart);
}

/** Ids of the runs that this job started and that have not ended. */
export async function runsOfJob(rows: WorkflowRows, job: string): Promise<readonly string[]> {
  return (await openRuns(rows)).flatMap(({ id, starter: { home } }) =>
    home.kind === 'job' && home.job === job ? [id] : [],
  );
}

export async function beginRun(
  { runs, definitions, open }: WorkflowRows,
  run: WorkflowRun,
  definition: Definition,
): Promise<void> {
  await runs.change(
    run.id,
    () => run,
    ({ id }) => [definitions.write(id, definition), open.write(id, {})],
  );
}

/** Undefined where the run does not exist or nothing changed. */
export function changeRun(
  { runs, open }: WorkflowRows,
  id: string,
  step: (run: WorkflowRun) => WorkflowRun,
): Promise<WorkflowRun | undefined> {
  return runs.change(
    id,
    (run) => run && step(run),
    (run) => (isOver(run) ? [open.write(id, undefined)] : []),
  );
}

/** Removes runs that were last written before (epoch milliseconds). */
export async function removeOldRuns(rows: WorkflowRows, before: number): Promise<void> {
  for (const each of Object.values(rows)) await each.expire(before);
}

export async function removeRun(
  { runs, definitions, open }: WorkflowRows,
  id: string,
): Promise<void> {
  await runs.change(
    id,
    () => 'remove',
    () => [definitions.write(id, undefined), open.write(id, undefined)],
  );
}

const byStart = (one: WorkflowRun, other: WorkflowRun) => one.startedAt - other.startedAt;
