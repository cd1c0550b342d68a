// CONTRACT of what people see and do about helpers, the turns that turns of the agent start.

import type { SessionKey } from '../../kernel/message/ids.ts';

/** Of one conversation, or of all. */
export type HelpersOf = SessionKey | 'all';

export interface HelperDesk {
  /** A line each, those at work first. */
  lines(whose: HelpersOf): Promise<readonly string[]>;
  running(whose: HelpersOf): Promise<number>;
  /** What came of it, in words. */
  kill(id: string, whose: HelpersOf): Promise<string>;
  /** Ends all of a conversation; how many there were. */
  stopAll(session: SessionKey): Promise<number>;
}
