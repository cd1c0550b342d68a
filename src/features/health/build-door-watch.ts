// Looks after the doors once a minute: what waits at one that is down goes to another one, and what
// came in after one was down is told.

import { configuredAccounts } from '../../channels/accounts.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { StateStore } from '../../kernel/bus/store/store.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { AccountName } from '../../kernel/message/account.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { People } from '../people/people.ts';
import { createFallback } from './fallback.ts';
import { createOutages, type Outages } from './outages.ts';

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
