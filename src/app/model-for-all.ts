// The model that the owner chose for all by /local default. It counts until the configuration names
// another one than it did then.

import { jsonRow, rowShape, text } from '../lib/json-row.ts';
import type { KeyValueStore } from '../store/store.ts';
import type { LiveConfig } from './live-config.ts';

const KEY = 'default';

export interface ModelForAll {
  /** Empty: the configured one. */
  current(): string;
  set(model: string | undefined): Promise<void>;
}

type Row = { readonly model: string; readonly configured: string };

const ROW = rowShape<Row>({ model: text, configured: text });

export async function openModelForAll(
  state: KeyValueStore,
  live: LiveConfig,
): Promise<ModelForAll> {
  let row = jsonRow((await state.get(KEY)) ?? '', ROW);
  return {
    current: () => (row?.configured === live.defaults.model ? row.model : ''),
    async set(model) {
      const next = model === undefined ? undefined : { model, configured: live.defaults.model };
      if (next === undefined) await state.delete(KEY);
      else await state.set(KEY, JSON.stringify(next));
      row = next;
    },
  };
}
