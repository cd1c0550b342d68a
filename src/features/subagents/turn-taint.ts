// Whether what a turn said may hold words of others: what it was shown may stand in what it says.

import type { SessionKey, TurnId } from '../../kernel/message/ids.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';

/** In doubt, where nothing is recorded of it, it may. */
export async function isForeignTurn(
  sessions: Pick<SessionStore, 'turn'>,
  session: SessionKey,
  turn: TurnId,
): Promise<boolean> {
  const entries = await sessions.turn(session, turn);
  return entries.length === 0 || entries.some((entry) => 'isForeign' in entry);
}
