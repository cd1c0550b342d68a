// How many drafts may wait, and to how many new addresses the agent may write in a day (case table D5).

import type { SessionKey } from '../core/ids.ts';
import type { Letter } from '../core/letter.ts';
import { type Draft, isWaiting } from './draft-book.ts';
import { DRAFT_TEXTS } from './draft-outcome.ts';

const DAY_MS = 86_400_000;
const MAX_OPEN = 20;
const MAX_OPEN_IN_SESSION = 5;
const MAX_NEW_ADDRESSES = 5;

export type NextLetter = {
  readonly letter: Letter;
  /** Something was sent there before. */
  readonly isKnown: boolean;
  readonly session: SessionKey;
  readonly now: number;
};

/** Why nothing more may be asked for now. */
export function fullness(
  all: readonly Draft[],
  { letter, isKnown, session, now }: NextLetter,
): string | undefined {
  const waiting = all.filter(isWaiting);
  const here = waiting.filter(({ turn }) => turn.session === session);
  if (waiting.length >= MAX_OPEN || here.length >= MAX_OPEN_IN_SESSION) return DRAFT_TEXTS.TOO_MANY;
  if (letter.kind !== 'mail' || isKnown) return undefined;
  const counted = all.filter(({ at, isNew, state }) => {
    return isNew && at > now - DAY_MS && state !== 'dropped' && state !== 'expired';
  });
  const mails = counted.filter((draft) => draft.letter.kind === 'mail');
  const addresses = new Set(mails.map((draft) => draft.letter.to));
  const isFull = addresses.size >= MAX_NEW_ADDRESSES && !addresses.has(letter.to);
  return isFull ? DRAFT_TEXTS.TOO_MANY_NEW : undefined;
}
