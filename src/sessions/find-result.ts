// Finds a tool's result by its name in the record of its conversation, whole. Nothing of a turn that was
// taken back, nothing from before the conversation's last new start.

import type { ResultId, SessionKey } from '../core/ids.ts';
import { turnOfResult } from '../core/kept-result.ts';
import type { ToolEntry } from '../core/transcript.ts';
import type { SessionStore } from './store.ts';

export async function findResult(
  sessions: Pick<SessionStore, 'earlier'>,
  session: SessionKey,
  id: ResultId,
): Promise<ToolEntry | undefined> {
  const turn = turnOfResult(id);
  const { turns } = await sessions.earlier(session, { from: turn, before: turn + 1, maxTurns: 1 });
  const results = turns
    .flatMap(({ entries }) => entries)
    .filter((entry) => entry.role === 'tool' && entry.resultId === id);
  const [first] = results;
  const known = results.find((entry) => entry.role === 'tool' && entry.status !== 'unknown');
  const found = known ?? first;
  return found?.role === 'tool' ? found : undefined;
}
