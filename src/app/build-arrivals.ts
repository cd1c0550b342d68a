// Builds what lets one account answer where a message came to several.

import { accountsOf, CHANNELS } from '../channels/index.ts';
import type { StateStore } from '../kernel/bus/store/store.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import type { Judge } from '../kernel/intake/judge.ts';
import { createSharedArrivals, type SharedArrivals } from '../kernel/intake/shared-arrivals.ts';
import type { Clock } from '../lib/time/clock.ts';

export type ArrivalsParts = {
  readonly live: LiveConfig;
  readonly store: StateStore;
  readonly clock: Clock;
  readonly judge: Judge;
};

export function buildArrivals({ live, store, clock, judge }: ArrivalsParts): SharedArrivals {
  return createSharedArrivals({
    ...{ state: store, judge, clock },
    hasSeveral(channel) {
      const definition = CHANNELS.find(({ name }) => name === channel);
      return definition !== undefined && accountsOf(definition, live.config.channels).length > 1;
    },
  });
}
