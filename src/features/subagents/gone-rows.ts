// Whose work is over and forgotten, as long as its conversation still lies on the disk: so that words
// can be taken out of that too.

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { jsonRow, type RowShape } from '../../lib/json/json-row.ts';

const PREFIX = 'gone:';

/** `Row`: what tells whose it was. */
export class GoneRows<Row extends { readonly id: string }> {
  readonly #state: KeyValueStore;
  readonly #shape: RowShape<Row>;

  constructor(state: KeyValueStore, shape: RowShape<Row>) {
    this.#state = state;
    this.#shape = shape;
  }

  /** Puts it in place of the row with this key, in one step. */
  async replace(key: string, row: Row): Promise<void> {
    await this.#state.setMany([
      { key: PREFIX + row.id, value: JSON.stringify(row) },
      { key, value: undefined },
    ]);
  }

  async all(): Promise<readonly Row[]> {
    const rows = await this.#state.list(PREFIX);
    return rows.flatMap(({ value }) => jsonRow(value, this.#shape) ?? []);
  }

  async drop(id: string): Promise<void> {
    await this.#state.delete(PREFIX + id);
  }
}
