// What summing up works with, whichever engine does it.

import type { SessionKey } from '../kernel/message/ids.ts';
import type { SessionStore } from '../kernel/sessions/store.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import type { SideModel } from './side-model.ts';

export type CompactorDeps = {
  readonly sessions: SessionStore;
  readonly side: SideModel;
  readonly clock: Clock;
  readonly log: Logger;
  models(): ModelRegistry;
  /** What was prepared for the session's next turn is no longer true. */
  outdated(session: SessionKey): void;
};
