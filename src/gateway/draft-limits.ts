// How many drafts may wait, and to how many new addresses the agent may write in a day (case table D5).

import type { Letter } from '../core/letter.ts';
import { hasPlace } from './approval-book.ts';
import type { AskingTurn } from './approvals.ts';
import { type Draft, isWaiting } from './draft-book.ts';
import { DRAFT_TEXTS } from './draft-outcome.ts';

const DAY_MS = 86_400_000;
const MAX_NEW_ADDRESSES = 5;

export type NextLetter = {
  readonly letter: Letter;
  /** Those it goes to whom nothing was sent before. */
  readonly newTo: readonly string[];
  readonly turn: Pick<AskingTurn, 'session' | 'whose' | 'isOwnerHere'>;
  readonly isTainted: boolean;
  readonly now: number;
};

/** Why nothing more may be asked for now. */
export function fullness(
  all: readonly Draft[],
  { letter, newTo, turn, isTainted, now }: NextLetter,
): string | undefined {
  const waiting = all.filter(isWaiting).map((draft) => ({ ...draft.turn, ...draft }));
  if (!hasPlace(waiting, { ...turn, isTainted })) return DRAFT_TEXTS.TOO_MANY;
  if (letter.kind !== 'mail' || newTo.length === 0) return undefined;
  const counted = all.filter(({ at, letter: { kind }, state }) => {
    return kind === 'mail' && at > now - DAY_MS && state !== 'dropped' && state !== 'expired';
  });
  const before = new Set(counted.flatMap((draft) => draft.newTo));
  const after = new Set([...before, ...newTo]);
  const isFull = after.size > before.size && after.size > MAX_NEW_ADDRESSES;
  return isFull ? DRAFT_TEXTS.TOO_MANY_NEW : undefined;
}
