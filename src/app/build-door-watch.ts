// Looks after the doors once a minute: what waits at one that is down goes to another one, and what
// came in after one was down is told.

import type { MessageBus } from '../bus/bus.ts';
import { configuredAccounts } from '../channels/accounts.ts';
import type { AccountName } from '../core/account.ts';
import { createFallback } from '../gateway/fallback.ts';
import { createOutages, type Outages } from '../gateway/outages.ts';
import type { People } from '../gateway/people.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { StateStore } from '../store/store.ts';
import type { LiveConfig } from './live-config.ts';

const INTERVAL_MS = 60_000;

export type DoorWatchParts = {
  readonly live: LiveConfig;
  readonly store: StateStore;
  readonly bus: MessageBus;
  readonly people: People;
  readonly clock: Clock;
  readonly log: Logger;
  isRunning(account: AccountName): boolean;
  tell(text: string): void;
};

export type DoorWatch = Pick<Outages, 'arrived'> & {
  /** Until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
};

export async function buildDoorWatch(parts: DoorWatchParts): Promise<DoorWatch> {
  const { live, store, bus, people, clock, log, isRunning, tell } = parts;
  const accounts = () =>
    configuredAccounts(live.config.channels)
      .filter(({ isEnabled }) => isEnabled)
      .map(({ name }) => name);
  const common = { clock, accounts, isRunning };
  const outages = await createOutages({
    ...common,
    state: store.scope('outages'),
    timeZone: () => live.config.sessions.timeZone,
    tellOwner: tell,
  });
  const fallback = createFallback({ ...common, bus, persons: people.persons, log });

  return {
    arrived: outages.arrived,
    async run(signal) {
      while (!signal.aborted) {
        await outages.check();
        await fallback.check();
        await clock.sleep(INTERVAL_MS, signal).catch(() => undefined);
      }
    },
  };
}
