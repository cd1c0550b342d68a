// Work that is done in conversations of its own, such as jobs and subagents: a collection of it, and after
// work was removed whose it was, as long as its conversation is on disk.

import type { RowShape } from '../lib/json/json.ts';
import { jsonRows, type OpenRows, type RowsSpec } from './rows.ts';

type Named = { readonly id: string };

export type WorkSpec<T extends Left, Left extends Named> = Omit<RowsSpec<T>, 'read' | 'write'> & {
  readonly shape: RowShape<T>;
  readonly left: RowShape<Left>;
  /** What tells whose it was. */
  leaves(work: T): Left;
};

export function openWork<T extends Left, Left extends Named>(
  rows: OpenRows,
  { shape, left, leaves, ...spec }: WorkSpec<T, Left>,
) {
  const all = rows<T>({ ...jsonRows(shape), ...spec });
  const removed = rows<Left>({ ...jsonRows(left), scope: spec.scope, prefix: 'gone:' });
  return {
    all,
    removed,
    /** Whose all of it is or was. */
    known: async (): Promise<readonly Left[]> => [...(await all.list()), ...(await removed.list())],
    /** Whose it is or was. */
    whose: async (id: string): Promise<Left | undefined> =>
      (await all.get(id)) ?? (await removed.get(id)),
    async remove(id: string, isMeant: (work: T) => boolean = () => true): Promise<void> {
      await all.change(
        id,
        (work) => (work !== undefined && isMeant(work) ? 'remove' : undefined),
        (work) => [removed.write(id, leaves(work))],
      );
    },
  };
}
