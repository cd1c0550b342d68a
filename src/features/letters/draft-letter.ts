// A letter as the gateway keeps it: where it goes, what makes two of them the same, and what a standing yes
// to letters is bound to.

import { chatId } from '../../kernel/message/ids.ts';
import { type ChatRef, sessionKeyOf } from '../../kernel/message/message.ts';
import { hasPlace } from '../approvals/approval-rows.ts';
import type { AskingTurn } from '../approvals/approvals.ts';
import type { StandingCall } from '../approvals/standing-rows.ts';
import { DRAFT_TEXTS } from './draft-outcome.ts';
import { type Draft, isWaiting } from './draft-rows.ts';
import { type Letter, recipientsOf } from './rules/letter.ts';

/** Everybody a letter goes to, and where that is. */
export function placesOf(letter: Letter, chat: ChatRef): readonly (readonly [string, ChatRef])[] {
  const [to, ...copies] = recipientsOf(letter);
  return [[to, chat], ...copies.map((copy) => [copy, { ...chat, chat: chatId(copy) }] as const)];
}

export function isSameLetter(
  one: Draft,
  letter: Letter,
  { session }: Pick<AskingTurn, 'session'>,
): boolean {
  return one.turn.session === session && JSON.stringify(one.letter) === JSON.stringify(letter);
}

export function redactedLetter(letter: Letter, redact: (text: string) => string): Letter {
  const markdown = redact(letter.markdown);
  return letter.kind === 'mail'
    ? { ...letter, subject: redact(letter.subject), markdown }
    : { ...letter, markdown };
}

/**
 * Letters from this conversation to exactly these people by exactly these doors, whatever they say.
 * Undefined where nobody alone asks.
 */
export function standingOf({
  letter,
  chat,
  turn,
  isTainted,
}: Pick<Draft, 'letter' | 'chat' | 'turn' | 'isTainted'>):
  | (StandingCall & Pick<Draft, 'isTainted'>)
  | undefined {
  const { session, whose } = turn;
  if (whose === undefined) return undefined;
  const places = placesOf(letter, chat).map(([, there]) => sessionKeyOf(there));
  const tool = letter.kind === 'mail' ? 'send_email' : 'message';
  const pattern = JSON.stringify(places.toSorted());
  return { tool, access: 'send', pattern, session, whose, isTainted };
}

// How many drafts may wait, and to how many new addresses the agent may write in a day (case table D5).

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
