// CONTRACT of what people are told of the modes.

import type { SessionKey, TurnId } from '../../kernel/message/ids.ts';
import type { AgentMode } from './rules/mode.ts';

/** What is known of the modes. */
export interface ModeDesk {
  /** Where a conversation has none of its own. */
  configured(): AgentMode;
  /** What keeps it from working, a sentence each; empty: it can. */
  problems(mode: AgentMode): Promise<readonly string[]>;
  /** What it works with, in a few words. */
  about(mode: AgentMode): Promise<readonly string[]>;
  /** Who of several worked on a turn, a line each; empty: the main model alone, or nobody knows. */
  work(session: SessionKey, turn: TurnId): Promise<readonly string[]>;
}
