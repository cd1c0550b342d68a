// What summing up works with, whichever engine does it.

import type { SessionKey } from '../core/ids.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import type { SessionStore } from '../sessions/store.ts';
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
