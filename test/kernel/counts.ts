// A collection for tests: counts by their id.

import { jsonRows, type RowsSpec } from '../../src/kernel/rows.ts';
import { number, rowShape, text } from '../../src/lib/json/json.ts';

export type Count = { readonly id: string; readonly count: number };

export const COUNTS: RowsSpec<Count> = {
  ...jsonRows(rowShape<Count>({ id: text, count: number })),
  ...{ scope: 'counts', prefix: 'count:' },
};
