// Pending decisions: rows that wait for the answer of a person and say in `state` how far they are. A row
// is open until it is decided, by a press, by words or by the time; of several that decide, the first counts.

import type { SessionKey } from '../message/ids.ts';
import type { Rows } from '../rows.ts';
import { type Holds, isOfChats } from '../sessions/rules/forgetting.ts';

export type Pending = {
  readonly id: string;
  readonly session: SessionKey;
  /** `open`: nobody has decided. */
  readonly state: { readonly kind: string };
};

type KindOf<T extends Pending> = T['state']['kind'];

export const isOpen = ({ state }: Pending) => state.kind === 'open';

/** Those nobody has decided about, in the order of the collection. */
export const openOf = async <T extends Pending>(rows: Rows<T>): Promise<readonly T[]> =>
  (await rows.list()).filter(isOpen);

/** Whether the row was in one of the states of `from`, and is in `state` now. */
export async function moveOn<T extends Pending>(
  rows: Rows<T>,
  id: string,
  from: readonly KindOf<T>[],
  state: T['state'],
): Promise<boolean> {
  const moved = await rows.change(id, (row) =>
    row !== undefined && from.includes(row.state.kind) ? { ...row, state } : undefined,
  );
  return moved !== undefined;
}

/** Removes what was decided in these conversations and holds the words; how many. */
export const eraseDecided = <T extends Pending>(
  rows: Rows<T>,
  chats: readonly string[],
  holds: Holds,
  of: { isOver(row: T): boolean; textOf(row: T): unknown },
): Promise<number> =>
  rows.erase(
    (row) => of.isOver(row) && isOfChats(row, chats) && holds(JSON.stringify(of.textOf(row))),
  );
