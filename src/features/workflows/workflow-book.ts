// The runs of workflows on disk, with the definition each began with. Nothing that is written here holds
// the value of a secret.

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { createLanes } from '../../lib/async/lanes.ts';
import { jsonRow, number, object, rowShape, text } from '../../lib/json/json-row.ts';
import type { Redactor } from '../../lib/text/redact.ts';
import type { Definition } from './rules/definition.ts';
import { isOver, type WorkflowRun } from './rules/workflow.ts';

export const WORKFLOWS_SCOPE = 'workflows';
const RUN = 'run:';
const DEFINITION = 'definition:';
/** One row for each run that is not over, so that counting them reads no others. */
const OPEN = 'open:';

const RUN_ROW = rowShape<WorkflowRun>({
  ...{ id: text, workflow: text, starter: object, begunBy: text, state: object },
  ...{ startedAt: number, status: text, telling: text },
});
const DEFINITION_ROW = rowShape<Definition>({ workflow: object, capabilities: object });

export class WorkflowBook {
  readonly #state: KeyValueStore;
  readonly #redact: Redactor;
  readonly #lanes = createLanes();

  constructor(state: KeyValueStore, redact: Redactor) {
    this.#state = state;
    this.#redact = redact;
  }

  /** Oldest first. */
  async all(): Promise<readonly WorkflowRun[]> {
    const rows = await this.#state.list(RUN);
    const runs = rows.flatMap(({ value }) => jsonRow(value, RUN_ROW) ?? []);
    return runs.sort((one, other) => one.startedAt - other.startedAt);
  }

  /** Oldest first. */
  async open(): Promise<readonly WorkflowRun[]> {
    const ids = (await this.#state.list(OPEN)).map(({ key }) => key.slice(OPEN.length));
    const runs = await Promise.all(ids.map((id) => this.get(id)));
    return runs.flatMap((run) => run ?? []).sort((one, other) => one.startedAt - other.startedAt);
  }

  async get(id: string): Promise<WorkflowRun | undefined> {
    const row = await this.#state.get(RUN + id);
    return row === undefined ? undefined : jsonRow(row, RUN_ROW);
  }

  async definition(id: string): Promise<Definition | undefined> {
    const row = await this.#state.get(DEFINITION + id);
    return row === undefined ? undefined : jsonRow(row, DEFINITION_ROW);
  }

  begin(run: WorkflowRun, definition: Definition): Promise<void> {
    return this.#lanes.run(run.id, () =>
      this.#state.setMany([
        { key: RUN + run.id, value: this.#text(run) },
        { key: DEFINITION + run.id, value: JSON.stringify(definition) },
        { key: OPEN + run.id, value: '' },
      ]),
    );
  }

  /** One step at a time, from what is on disk now; undefined where there is none or nothing changed. */
  change(id: string, step: (run: WorkflowRun) => WorkflowRun): Promise<WorkflowRun | undefined> {
    return this.#lanes.run(id, async () => {
      const run = await this.get(id);
      const next = run === undefined ? undefined : step(run);
      if (next === undefined || next === run) return undefined;
      const rows = [{ key: RUN + id, value: this.#text(next) }];
      await this.#state.setMany(
        isOver(next) ? [...rows, { key: OPEN + id, value: undefined }] : rows,
      );
      return next;
    });
  }

  /** Forgets those that were last written before (epoch milliseconds). */
  async forget(before: number): Promise<void> {
    await this.#state.expire(RUN, before);
    await this.#state.expire(DEFINITION, before);
    await this.#state.expire(OPEN, before);
  }

  async remove(id: string): Promise<void> {
    const keys = [RUN, DEFINITION, OPEN].map((prefix) => prefix + id);
    await this.#state.setMany(keys.map((key) => ({ key, value: undefined })));
  }

  #text(run: WorkflowRun): string {
    return this.#redact(JSON.stringify(run));
  }
}
