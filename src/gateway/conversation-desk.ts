// CONTRACT of what people can see of their conversations, and bring back.

import type { ContextReport } from '../agent/context-report.ts';
import type { Revisions } from '../agent/revise.ts';
import type { SessionKey } from '../core/ids.ts';
import type { SessionInfo } from '../sessions/maintenance.ts';
import type { CommandOrigin } from './command.ts';

export interface ConversationDesk extends Pick<Revisions, 'restorable' | 'restore'> {
  /** What the next call of this conversation would take, for whoever asks. */
  context(origin: CommandOrigin): Promise<ContextReport>;
  /** Newest first; of those that are named, or the newest of all. */
  sessions(
    which: readonly SessionKey[] | { readonly newest: number },
  ): Promise<readonly SessionInfo[]>;
}
