// Builds what keeps count of messages.

import type { MessageBus } from '../bus/bus.ts';
import { createFairUse, type FairUse } from '../gateway/fair-use.ts';
import { createKnownAs } from '../gateway/known-as.ts';
import type { Persons } from '../gateway/persons.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { StateStore } from '../store/store.ts';
import type { LiveConfig } from './live-config.ts';

export type FairUseParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: StateStore;
  readonly bus: Pick<MessageBus, 'send'>;
};

export function buildFairUse(parts: FairUseParts, persons: Pick<Persons, 'of'>): FairUse {
  const { live, clock, log, store, bus } = parts;
  return createFairUse({
    ...{ state: store.scope('fair-use'), bus, clock, log },
    knownAs: createKnownAs(persons),
    settings: () => ({ limits: live.config.limits, timeZone: live.config.sessions.timeZone }),
  });
}
