// CONTRACT of what people are told of the modes.

import type { AgentMode } from '../core/mode.ts';

/** What is known of the modes. */
export interface ModeDesk {
  /** Where a conversation has none of its own. */
  configured(): AgentMode;
  /** What keeps it from working, a sentence each; empty: it can. */
  problems(mode: AgentMode): Promise<readonly string[]>;
  /** What it works with, in a few words. */
  about(mode: AgentMode): Promise<readonly string[]>;
}
