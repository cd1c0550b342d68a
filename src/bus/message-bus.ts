// The message bus over a store: wires accepting, working and delivering together, so that each wakes
// the next in the same transaction. What is durable is the store's; when to claim is the pumps'.

import type { ChannelName } from '../core/ids.ts';
import { sessionKeyOf } from '../core/message.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { BusStore } from '../store/store.ts';
import { Alarm } from './alarm.ts';
import {
  type AcceptResult,
  type BusLimits,
  type InboundEntry,
  type MessageBus,
  TurnCancelled,
} from './bus.ts';
import { DeliveryPump } from './delivery-pump.ts';
import { createLeadership } from './leadership.ts';
import { createLiveTopic } from './live.ts';
import { TurnPump } from './turn-pump.ts';

export type MessageBusDeps = {
  readonly store: BusStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: BusLimits;
};

/** How soon work is noticed that another process (a command) put into the store. */
const OUTSIDE_CHECK_MS = 2000;

export function createMessageBus(deps: MessageBusDeps): MessageBus {
  const { store, clock, log, limits } = deps;
  const deliveries = new Map<ChannelName, DeliveryPump>();
  const stop = new AbortController();
  const underWay = new Set<Promise<void>>();
  let turns: TurnPump | undefined;

  const outside = new Alarm(clock, () => {
    if (store.changedOutside()) {
      turns?.onOutsideChange();
      for (const pump of deliveries.values()) pump.pump();
    }
    watchOutside();
  });

  function watchOutside(): void {
    const isBusy = turns !== undefined || deliveries.size > 0;
    outside.set(isBusy ? clock.now() + OUTSIDE_CHECK_MS : undefined);
  }

  function announce(batch: readonly InboundEntry[], results: readonly AcceptResult[]): void {
    for (const [index, entry] of batch.entries()) {
      if (entry.kind !== 'queue' || results[index] !== 'accepted') continue;
      turns?.turnOf(sessionKeyOf(entry.message.chat))?.announceFollower();
    }
  }

  async function track(run: Promise<void>, onEnd: () => void): Promise<void> {
    underWay.add(run);
    watchOutside();
    try {
      await run;
    } finally {
      underWay.delete(run);
      onEnd();
      watchOutside();
    }
  }

  return {
    live: createLiveTopic(),
    lead: createLeadership(clock),

    async accept(batch, { cursor } = {}) {
      const accepted = store.accept(batch, { cursor, limits });
      if (batch.some((entry) => entry.kind === 'queue')) turns?.pump();
      const results = await accepted;
      announce(batch, results);
      return results;
    },
    cursor: (channel, account) => store.cursor(channel, account),

    async work(handler, options) {
      if (turns !== undefined) throw new TypeError('work() is already under way');
      const signal = AbortSignal.any([options.signal, stop.signal]);
      const onQueued = (messages: readonly { readonly chat: { channel: ChannelName } }[]) => {
        for (const { chat } of messages) deliveries.get(chat.channel)?.pump();
      };
      turns = new TurnPump(handler, { ...options, signal }, { store, clock, log, onQueued });
      await track(turns.run(), () => {
        turns = undefined;
      });
    },

    async deliver(courier, options) {
      const { channel } = courier;
      if (deliveries.has(channel)) throw new TypeError(`${channel} is being delivered already`);
      const signal = AbortSignal.any([options.signal, stop.signal]);
      const pump = new DeliveryPump(courier, { ...options, signal }, { store, clock, log });
      deliveries.set(channel, pump);
      await track(pump.run(), () => deliveries.delete(channel));
    },

    send(message) {
      const queued = store.queue(message);
      deliveries.get(message.chat.channel)?.pump();
      return queued;
    },

    recordDraft: (turnId, chat, nativeId) => store.recordDraft({ turnId, chat, nativeId }),
    draft: (turnId) => store.draft(turnId),
    orphanDrafts: (channel) => store.orphanDrafts(channel),
    forgetDraft: (turnId) => store.forgetDraft(turnId),

    async cancel(session, reason) {
      const abort = () => turns?.turnOf(session)?.abort(new TurnCancelled(reason));
      const cancelled = store.cancel(session, reason);
      abort();
      const result = await cancelled;
      // Once more for a turn whose claim was committed but not yet started.
      if (result.running) abort();
      return result;
    },

    dead: () => store.dead(),
    async retry(ids) {
      const retried = store.retry(ids);
      turns?.pump();
      for (const pump of deliveries.values()) pump.pump();
      return retried;
    },
    drop: (ids) => store.drop(ids),
    trace: (id) => store.trace(id),
    stats: () => store.stats(),
    gc: (windowMs) => store.gc(windowMs),

    /** Stops working and delivering; the store is its owner's to close. */
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.allSettled(underWay);
    },
  };
}
