// The message bus over a store: connects accepting, processing and delivering, so that each wakes
// the next in the same transaction. The store makes things durable; the pumps decide when to claim.

import { inTime } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { type Clock, onAbort } from '../../lib/time/clock.ts';
import { type AccountName, accountName, type TurnId } from '../message/ids.ts';
import { type LiveUpdate, type OutboundMessage, sessionOf } from '../message/message.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import type { TurnEntries } from '../sessions/store.ts';
import { type BusLimits, type LiveTopic, type MessageBus, TurnCancelled } from './bus.ts';
import { createAlarm, measureArrival } from './claim-loop.ts';
import { createDeliveryPump, type DeliveryPump } from './delivery-pump.ts';
import { createLeadership, createSharedLeadership } from './leadership.ts';
import type { SharedStore } from './store/shared.ts';
import type { BusStore } from './store/store.ts';
import { createShortage, createTurnPump, type TurnPump } from './turn-pump.ts';

type MessageBusDeps = {
  readonly store: BusStore & { readonly shared?: SharedStore };
  /**
   * Writes the entries that turns recorded together with their end; absent: they record nothing.
   */
  readonly entries?: TurnEntries;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: BusLimits;
  /** Reduces an update of a turn for subscribers of live updates; absent: unchanged. */
  readonly shown?: (update: LiveUpdate) => LiveUpdate;
  /** Gets arrivals and deliveries. */
  readonly telemetry?: Telemetry;
};

/** How soon work that another process (a command) stored is noticed. */
const OUTSIDE_CHECK_MS = 2000;
/** A little longer than current sends get when delivering stops. */
const DISPOSE_GRACE_MS = 6000;

export function createMessageBus(deps: MessageBusDeps): MessageBus {
  const { store, clock, limits, shown = (update) => update } = deps;
  const { cursor, markBounced, draft, orphanDrafts, forgetDraft, isDelivering } = store;
  const { inbound, outbound, sentAs, takeBack, stranded, dead, drop, trace, stats, gc } = store;
  const { shared } = store;
  const lead =
    shared === undefined
      ? createLeadership(clock)
      : createSharedLeadership({ shared, clock, log: deps.log });
  const pumps = createPumps(deps);
  return {
    ...{ cursor, markBounced, draft, orphanDrafts, forgetDraft, isDelivering },
    ...{ inbound, outbound, sentAs, takeBack, stranded, dead, drop, trace, stats, gc },
    live: createLiveTopic(shown, shared),
    lead,
    work: pumps.work,
    deliver: pumps.deliver,
    [Symbol.asyncDispose]: pumps.stop,

    async accept(batch, { cursor: place, rows = [] } = {}) {
      const accepted = store.accept(batch, { cursor: place, limits, rows });
      if (batch.some((entry) => entry.kind === 'queue')) pumps.turns()?.pump();
      const results = await accepted;
      if (results.some((result) => result !== 'duplicate')) {
        for (const row of rows) await row.committed();
      }
      for (const [index, entry] of batch.entries()) {
        measureArrival(deps, entry, results[index]);
        if (entry.kind !== 'queue' || results[index] !== 'accepted') continue;
        const turn = pumps.turns()?.turnOf(sessionOf(entry.message));
        const isFollower = turn?.contains(entry.message.id) === false;
        if (isFollower) turn.announceFollower();
      }
      return results;
    },
    send(message) {
      const queued = store.queue(message);
      pumps.queued([message]);
      return queued;
    },
    placingDraft: (turnId, chat, replyTo) =>
      store.recordDraft({ turnId, chat, ...(replyTo === undefined ? {} : { replyTo }) }),
    recordDraft: (turnId, chat, nativeId) => store.recordDraft({ turnId, chat, nativeId }),
    async cancel(session, reason) {
      const abort = () => pumps.turns()?.turnOf(session)?.abort(new TurnCancelled(reason));
      const cancelled = store.cancel(session, reason);
      abort();
      const result = await cancelled;
      // Again, for a turn whose claim was committed but not yet started.
      if (result.running) abort();
      return result;
    },
    divert(id, instead) {
      const diverted = store.divert(id, instead);
      pumps.queued([instead]);
      return diverted;
    },
    retry(ids) {
      const retried = store.retry(ids);
      pumps.turns()?.pump();
      pumps.deliverAll();
      return retried;
    },
  };
}

/** The pumps that claim turns and deliveries while `work` and `deliver` run. */
function createPumps(deps: MessageBusDeps) {
  const { store, clock } = deps;
  const { shared } = store;
  const deliveries = new Map<AccountName, DeliveryPump>();
  const stopping = new AbortController();
  const shortage = createShortage();
  const underWay = new Set<Promise<void>>();
  const outside = createAlarm(clock, () => {
    if (store.changedOutside()) {
      turns?.onOutsideChange();
      deliverAll();
    }
    watchOutside();
  });
  const hearing = shared?.onNews((news) => {
    if (shared !== undefined) turns?.hearOfOthers(shared, news);
    for (const [account, pump] of deliveries) {
      if (news.isAnything || news.accounts.has(account)) pump.pump();
    }
  });
  const losing = shared?.onLost(() => void turns?.onLost(shared));
  let turns: TurnPump | undefined;

  function watchOutside(): void {
    // Processes that share a store tell each other.
    if (shared !== undefined) return;
    outside.set(underWay.size > 0 ? clock.now() + OUTSIDE_CHECK_MS : undefined);
  }

  function deliverAll(): void {
    for (const pump of deliveries.values()) pump.pump();
  }

  function queued(messages: readonly OutboundMessage[]): void {
    for (const { chat } of messages) deliveries.get(accountName(chat))?.pump();
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

  const work: MessageBus['work'] = async (handler, options) => {
    if (turns !== undefined) throw new TypeError('work() is already under way');
    const signal = AbortSignal.any([options.signal, stopping.signal]);
    const how = { ...deps, shortage, onQueued: queued };
    turns = createTurnPump(handler, { ...options, signal }, how);
    await track(turns.run(), () => {
      turns = undefined;
    });
  };

  const deliver: MessageBus['deliver'] = async (courier, options) => {
    const { account } = courier;
    if (deliveries.has(account)) throw new TypeError(`${account} is being delivered already`);
    const signal = AbortSignal.any([options.signal, stopping.signal]);
    const pump = createDeliveryPump(courier, { ...options, signal }, deps);
    deliveries.set(account, pump);
    await track(pump.run(), () => deliveries.delete(account));
  };

  /**
   * Stops processing and delivering. A handler that ignores its signal is awaited only for a grace
   * period: its turn goes back to the queue at the next start. The owner of the store closes it.
   */
  async function stop(): Promise<void> {
    stopping.abort();
    await inTime(clock, DISPOSE_GRACE_MS, Promise.allSettled(underWay));
    hearing?.[Symbol.dispose]();
    losing?.[Symbol.dispose]();
  }

  return { work, deliver, stop, queued, deliverAll, turns: () => turns };
}

// The live topic: updates of running turns, best effort. Each subscriber holds only the newest
// update per turn, so a slow one costs memory for the running turns, never for history.

/** Turns by which a subscriber may lag; beyond that the oldest update is dropped. */
const MAX_HELD_TURNS = 10_000;

/** `shown`: reduces an update, called only for those that a subscriber takes. */
function createLiveTopic(
  shown: (update: LiveUpdate) => LiveUpdate,
  shared: SharedStore | undefined,
): LiveTopic {
  const mailboxes = new Map<AccountName, Set<Mailbox>>();
  const put = (update: LiveUpdate) => {
    for (const mailbox of mailboxes.get(accountName(update.chat)) ?? []) mailbox.put(update);
  };
  shared?.onShown(put, (account) => mailboxes.has(account));
  return {
    publish(update) {
      put(update);
      shared?.show(update, shown);
    },
    subscribe(account, signal) {
      const mailbox = new Mailbox();
      const ofAccount = mailboxes.get(account) ?? new Set();
      mailboxes.set(account, ofAccount.add(mailbox));
      const onEnd = () => {
        ofAccount.delete(mailbox);
        if (ofAccount.size === 0 && mailboxes.get(account) === ofAccount) mailboxes.delete(account);
      };
      return mailbox.read(signal, shown, onEnd);
    },
  };
}

class Mailbox {
  readonly #newest = new Map<TurnId, LiveUpdate>();
  #arrived = Promise.withResolvers<void>();

  put(update: LiveUpdate): void {
    // A turn keeps its place in the queue, so one that changes often cannot be starved.
    this.#newest.set(update.turnId, update);
    const [oldest] = this.#newest.keys();
    if (this.#newest.size > MAX_HELD_TURNS && oldest !== undefined) this.#newest.delete(oldest);
    this.#arrived.resolve();
  }

  async *read(
    signal: AbortSignal,
    shown: (update: LiveUpdate) => LiveUpdate,
    onEnd: () => void,
  ): AsyncGenerator<LiveUpdate, void, void> {
    using _ending = onAbort(signal, () => this.#arrived.resolve());
    try {
      while (!signal.aborted) {
        const [update] = this.#newest.values();
        if (update === undefined) {
          this.#arrived = Promise.withResolvers();
          await this.#arrived.promise;
        } else {
          this.#newest.delete(update.turnId);
          yield shown(update);
        }
      }
    } finally {
      onEnd();
    }
  }
}
