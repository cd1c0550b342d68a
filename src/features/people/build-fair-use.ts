// Builds what keeps count of messages.

import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { StateStore } from '../../kernel/bus/store/store.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import { createFairUse, type FairUse } from '../../kernel/intake/fair-use.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createKnownAs } from './people.ts';
import type { Persons } from './persons.ts';

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
