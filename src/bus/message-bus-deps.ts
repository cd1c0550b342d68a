// What the message bus is made of.

import type { LiveUpdate } from '../core/event.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { BusStore } from '../store/store.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { BusLimits } from './bus.ts';

export type MessageBusDeps = {
  readonly store: BusStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: BusLimits;
  /** What live views get of a picture of a turn; all of it where left out. */
  readonly shown?: (update: LiveUpdate) => LiveUpdate;
  /** Told of arrivals and deliveries. */
  readonly telemetry?: Telemetry;
};
