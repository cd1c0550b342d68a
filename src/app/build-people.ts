// Builds who is who: pairing, persons and strangers over the doors, and what waits for a decision.

import { randomBytes } from 'node:crypto';
import type { MessageBus } from '../bus/bus.ts';
import { createPeople, type People } from '../gateway/people.ts';
import type { Clock } from '../lib/clock.ts';
import type { EmbeddedStore } from '../store/store.ts';
import { gateOf } from './doors.ts';
import type { LiveConfig } from './live-config.ts';
import { OWN_DOORS } from './own-doors.ts';
import { PAIRING_SCOPE } from './state.ts';

export type PeopleParts = {
  readonly store: Pick<EmbeddedStore, 'scope' | 'revision'>;
  readonly bus: MessageBus;
  readonly clock: Clock;
  readonly live: LiveConfig;
};

export function buildPeople({ store, bus, clock, live }: PeopleParts): People {
  return createPeople({
    state: store.scope(PAIRING_SCOPE),
    clock,
    randomBytes,
    revision: store.revision,
    ownDoors: OWN_DOORS,
    policy: (channel, account) => gateOf(channel, live.config, account),
    async release(messages) {
      await bus.accept(messages.map((message) => ({ kind: 'queue', message })));
    },
  });
}
