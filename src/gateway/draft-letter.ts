// A letter as the gateway keeps it: where it goes, what makes two of them the same, and what a standing yes
// to letters is bound to.

import { chatId } from '../core/ids.ts';
import { type Letter, recipientsOf } from '../core/letter.ts';
import { type ChatRef, sessionKeyOf } from '../core/message.ts';
import type { AskingTurn } from './approvals.ts';
import type { Draft } from './draft-book.ts';
import type { StandingCall } from './standing-book.ts';

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
