// One leader per resource: an account, or a task that runs once. In one process it is a queue in
// memory; among several, a row of the store with an epoch, which a process keeps while it lives.

import { createLanes } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { MessageBus } from './bus.ts';
import type { SharedStore, StoreNews } from './store/shared.ts';

type Lead = MessageBus['lead'];

/**
 * The home lock, or that of the database, makes this process the only one: nothing durable, nothing
 * stale after a crash, no heartbeat.
 */
export function createLeadership(clock: Clock): Lead {
  const lanes = createLanes();
  let lastEpoch = 0;
  return (resource, run, signal) =>
    lanes.run(resource, async () => {
      if (signal.aborted) return;
      // Grows across restarts too, without a write.
      lastEpoch = Math.max(lastEpoch + 1, clock.now());
      await run(signal, lastEpoch);
    });
}

/** Between two looks for a resource that another process leads; news come earlier. */
const LOOK_MS = 2000;

const concerns = ({ isAnything, isAboutLeads }: StoreNews) => isAnything || isAboutLeads;

type SharedLeadershipDeps = {
  readonly shared: SharedStore;
  readonly clock: Clock;
  readonly log: Logger;
};

/** A leader whose process lost the resource is told to end, and tries to lead it again. */
export function createSharedLeadership({ shared, clock, log }: SharedLeadershipDeps): Lead {
  const lanes = createLanes();
  const led = new Map<string, AbortController>();
  shared.onLost(() => void check());
  shared.onNews((news) => concerns(news) && void check());

  async function check(): Promise<void> {
    if (!shared.isConnected()) {
      for (const resource of led.keys()) lose(resource);
      return;
    }
    for (const [resource, leading] of led) {
      if (shared.leaderOf(resource) === shared.owner) continue;
      const isLeading = await shared.isLeading(resource).catch(() => true);
      if (!isLeading && led.get(resource) === leading) lose(resource);
    }
  }

  function lose(resource: string): void {
    if (led.get(resource)?.signal.aborted !== false) return;
    log.warn('another process leads this now', { resource });
    led.get(resource)?.abort(new Error('another process leads this'));
  }

  async function leadOnce(
    resource: string,
    run: Parameters<Lead>[1],
    epoch: number,
    signal: AbortSignal,
  ): Promise<'lost' | 'over'> {
    const leading = new AbortController();
    led.set(resource, leading);
    log.info('leading', { resource, epoch });
    try {
      await run(AbortSignal.any([signal, leading.signal]), epoch);
    } finally {
      led.delete(resource);
      if (!leading.signal.aborted) {
        await shared
          .release(resource)
          .catch((error) => log.warn('lead not given back', { resource, error }));
      }
    }
    return leading.signal.aborted ? 'lost' : 'over';
  }

  const isFree = (resource: string) => {
    const by = shared.leaderOf(resource);
    return by === undefined || by === shared.owner;
  };

  async function next(resource: string, signal: AbortSignal): Promise<void> {
    const waited = new AbortController();
    const hearing = shared.onNews((news) => concerns(news) && isFree(resource) && waited.abort());
    const whole = AbortSignal.any([signal, waited.signal]);
    await clock.sleep(LOOK_MS, whole).catch(() => undefined);
    hearing[Symbol.dispose]();
  }

  return (resource, run, signal) =>
    lanes.run(resource, async () => {
      while (!signal.aborted) {
        const mayLead = isFree(resource) && shared.isConnected();
        const epoch = mayLead ? await shared.lead(resource) : undefined;
        if (epoch === undefined) await next(resource, signal);
        else if ((await leadOnce(resource, run, epoch, signal)) === 'over') return;
      }
    });
}
