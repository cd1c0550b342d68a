// Builds who is who: pairing, persons and strangers over the doors, and what waits for a decision.

import { randomBytes } from 'node:crypto';
import { OWN_DOORS } from '../../channels/door.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { EmbeddedStore } from '../../kernel/bus/store/store.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import { PAIRING_SCOPE } from '../../kernel/home-state.ts';
import { gateOf } from '../../kernel/intake/doors.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createPeople, type People } from './people.ts';

export type PeopleParts = {
  readonly store: Pick<EmbeddedStore, 'scope' | 'revision'>;
  readonly rows: OpenRows;
  readonly bus: MessageBus;
  readonly clock: Clock;
  readonly live: LiveConfig;
};

export function buildPeople({ store, rows, bus, clock, live }: PeopleParts): People {
  return createPeople({
    rows,
    state: store.scope(PAIRING_SCOPE),
    clock,
    randomBytes,
    ownDoors: OWN_DOORS,
    policy: (channel, account) => gateOf(channel, live.config, account),
    async release(messages) {
      await bus.accept(messages.map((message) => ({ kind: 'queue', message })));
    },
  });
}
