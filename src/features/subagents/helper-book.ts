// The helpers on disk, running and over. Read anew each time: they are few, and another process may ask.

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { createLanes } from '../../lib/async/lanes.ts';
import { jsonRow, number, object, objects, rowShape, text } from '../../lib/json/json-row.ts';
import { GoneRows } from './gone-rows.ts';
import type { HelperRun } from './rules/subagent.ts';

export const HELPERS_SCOPE = 'subagents';
const PREFIX = 'run:';

const RUN = rowShape<HelperRun>({
  ...{ id: text, label: text, plan: object, parent: object, depth: number, terms: object },
  ...{ attempt: number, answers: objects, startedAt: number, state: text, telling: text },
});
const GONE = rowShape<Pick<HelperRun, 'id' | 'parent'>>({ id: text, parent: object });

export class HelperBook {
  /** Those that were forgotten and have a conversation on the disk. */
  readonly gone: GoneRows<Pick<HelperRun, 'id' | 'parent'>>;
  readonly #state: KeyValueStore;
  readonly #lanes = createLanes();

  constructor(state: KeyValueStore) {
    this.#state = state;
    this.gone = new GoneRows(state, GONE);
  }

  /** Oldest first. */
  async all(): Promise<readonly HelperRun[]> {
    const rows = await this.#state.list(PREFIX);
    const runs = rows.flatMap(({ value }) => jsonRow(value, RUN) ?? []);
    return runs.sort((one, other) => one.startedAt - other.startedAt);
  }

  async get(id: string): Promise<HelperRun | undefined> {
    const row = await this.#state.get(PREFIX + id);
    return row === undefined ? undefined : jsonRow(row, RUN);
  }

  put(run: HelperRun): Promise<void> {
    return this.#lanes.run(run.id, () => this.#state.set(PREFIX + run.id, JSON.stringify(run)));
  }

  /** One step at a time, from what is on disk now; undefined where there is none or nothing changed. */
  change(id: string, step: (run: HelperRun) => HelperRun): Promise<HelperRun | undefined> {
    return this.#lanes.run(id, async () => {
      const run = await this.get(id);
      const next = run === undefined ? undefined : step(run);
      if (next === undefined || next === run) return undefined;
      await this.#state.set(PREFIX + id, JSON.stringify(next));
      return next;
    });
  }

  /** Forgets those that ended before (epoch milliseconds); whose they were stays known. */
  async forget(before: number): Promise<void> {
    for (const { id, parent, state, endedAt, startedAt } of await this.all()) {
      if (state === 'running' || (endedAt ?? startedAt) >= before) continue;
      await this.#lanes.run(id, () => this.gone.replace(PREFIX + id, { id, parent }));
    }
  }
}
