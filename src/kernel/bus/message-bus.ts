// The message bus over a store: wires accepting, working and delivering together, so that each wakes
// the next in the same transaction. What is durable is the store's; when to claim is the pumps'.

import { createLanes } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { type AccountName, accountName } from '../message/account.ts';
import type { LiveUpdate } from '../message/event.ts';
import type {
  AccountId,
  ChannelName,
  MessageId,
  NativeId,
  SessionKey,
  TurnId,
} from '../message/ids.ts';
import {
  type ChatRef,
  type InboundMessage,
  type OutboundMessage,
  sessionOf,
} from '../message/message.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import {
  type AcceptResult,
  type BusLimits,
  type BusStats,
  type CancelResult,
  type Courier,
  type DeadLetter,
  type DeliverOptions,
  type InboundEntry,
  type LastMessage,
  type LiveDraft,
  type LiveTopic,
  type MessageBus,
  type SentText,
  type TakenBack,
  type Trace,
  TurnCancelled,
  type TurnHandler,
  type WorkOptions,
} from './bus.ts';
import { Alarm, measureArrival } from './claim-loop.ts';
import { DeliveryPump } from './delivery-pump.ts';
import type { BusStore } from './store/store.ts';
import { Shortage, TurnPump } from './turn-pump.ts';

/** How soon work is noticed that another process (a command) put into the store. */
const OUTSIDE_CHECK_MS = 2000;
/** A little longer than what is being sent gets when delivering stops. */
const DISPOSE_GRACE_MS = 6000;

export function createMessageBus(deps: MessageBusDeps): MessageBus {
  return new StoreBus(deps);
}

class StoreBus implements MessageBus {
  readonly live: LiveTopic;
  readonly lead: MessageBus['lead'];
  readonly #deps: MessageBusDeps;
  readonly #store: BusStore;
  readonly #deliveries = new Map<AccountName, DeliveryPump>();
  readonly #outside: Alarm;
  readonly #stop = new AbortController();
  readonly #shortage = new Shortage();
  readonly #underWay = new Set<Promise<void>>();
  #turns: TurnPump | undefined;

  constructor(deps: MessageBusDeps) {
    this.#deps = deps;
    this.#store = deps.store;
    this.live = createLiveTopic(deps.shown ?? ((update) => update));
    this.lead = createLeadership(deps.clock);
    this.#outside = new Alarm(deps.clock, () => this.#checkOutside());
  }

  async accept(
    batch: readonly InboundEntry[],
    { cursor, rows = [] }: Parameters<MessageBus['accept']>[1] = {},
  ): Promise<readonly AcceptResult[]> {
    const accepted = this.#store.accept(batch, { cursor, limits: this.#deps.limits, rows });
    if (batch.some((entry) => entry.kind === 'queue')) this.#turns?.pump();
    const results = await accepted;
    if (results.some((result) => result !== 'duplicate')) {
      for (const row of rows) await row.committed();
    }
    for (const [index, entry] of batch.entries()) {
      measureArrival(this.#deps, entry, results[index]);
      if (entry.kind !== 'queue' || results[index] !== 'accepted') continue;
      this.#turns?.turnOf(sessionOf(entry.message))?.announceFollower();
    }
    return results;
  }

  cursor(channel: ChannelName, account: AccountId): Promise<string | undefined> {
    return this.#store.cursor(channel, account);
  }

  async work(handler: TurnHandler, options: WorkOptions): Promise<void> {
    if (this.#turns !== undefined) throw new TypeError('work() is already under way');
    const signal = AbortSignal.any([options.signal, this.#stop.signal]);
    const turns = new TurnPump(
      handler,
      { ...options, signal },
      {
        ...this.#deps,
        shortage: this.#shortage,
        onQueued: (messages) => this.#pumpDeliveries(messages),
      },
    );
    this.#turns = turns;
    await this.#track(turns.run(), () => {
      this.#turns = undefined;
    });
  }

  async deliver(courier: Courier, options: DeliverOptions): Promise<void> {
    const { account } = courier;
    if (this.#deliveries.has(account)) throw new TypeError(`${account} is being delivered already`);
    const signal = AbortSignal.any([options.signal, this.#stop.signal]);
    const pump = new DeliveryPump(courier, { ...options, signal }, this.#deps);
    this.#deliveries.set(account, pump);
    await this.#track(pump.run(), () => this.#deliveries.delete(account));
  }

  send(message: OutboundMessage): Promise<'queued' | 'duplicate'> {
    const queued = this.#store.queue(message);
    this.#pumpDeliveries([message]);
    return queued;
  }

  markBounced(id: MessageId, reason: string): Promise<'marked' | 'known' | 'not sent'> {
    return this.#store.markBounced(id, reason);
  }

  placingDraft(turnId: TurnId, chat: ChatRef, replyTo: MessageId | undefined): Promise<void> {
    return this.#store.recordDraft({ turnId, chat, ...(replyTo === undefined ? {} : { replyTo }) });
  }

  recordDraft(turnId: TurnId, chat: ChatRef, nativeId: NativeId): Promise<void> {
    return this.#store.recordDraft({ turnId, chat, nativeId });
  }

  draft(turnId: TurnId): Promise<LiveDraft | undefined> {
    return this.#store.draft(turnId);
  }

  orphanDrafts(account: AccountName): Promise<readonly LiveDraft[]> {
    return this.#store.orphanDrafts(account);
  }

  forgetDraft(turnId: TurnId): Promise<void> {
    return this.#store.forgetDraft(turnId);
  }

  isDelivering(chat: ChatRef): Promise<boolean> {
    return this.#store.isDelivering(chat);
  }

  async cancel(session: SessionKey, reason: string): Promise<CancelResult> {
    const abort = () => this.#turns?.turnOf(session)?.abort(new TurnCancelled(reason));
    const cancelled = this.#store.cancel(session, reason);
    abort();
    const result = await cancelled;
    // Once more for a turn whose claim was committed but not yet started.
    if (result.running) abort();
    return result;
  }

  inbound(id: MessageId): Promise<InboundMessage | undefined> {
    return this.#store.inbound(id);
  }

  outbound(id: MessageId): Promise<SentText | undefined> {
    return this.#store.outbound(id);
  }

  sentAs(session: SessionKey, part: NativeId): Promise<SentText | undefined> {
    return this.#store.sentAs(session, part);
  }

  takeBack(turnId: TurnId): Promise<TakenBack> {
    return this.#store.takeBack(turnId);
  }

  stranded(account: AccountName, since: number): ReturnType<MessageBus['stranded']> {
    return this.#store.stranded(account, since);
  }

  divert(id: MessageId, instead: OutboundMessage): ReturnType<MessageBus['divert']> {
    const diverted = this.#store.divert(id, instead);
    this.#pumpDeliveries([instead]);
    return diverted;
  }

  dead(): Promise<readonly DeadLetter[]> {
    return this.#store.dead();
  }

  retry(ids: readonly MessageId[]): Promise<number> {
    const retried = this.#store.retry(ids);
    this.#turns?.pump();
    for (const pump of this.#deliveries.values()) pump.pump();
    return retried;
  }

  drop(ids: readonly MessageId[]): Promise<number> {
    return this.#store.drop(ids);
  }

  trace(wanted: MessageId | 'last' | LastMessage): Promise<Trace | undefined> {
    return this.#store.trace(wanted);
  }

  stats(): Promise<BusStats> {
    return this.#store.stats();
  }

  gc(windowMs: number): Promise<number> {
    return this.#store.gc(windowMs);
  }

  /**
   * Stops working and delivering. A handler that does not heed its signal is not waited for beyond
   * a grace: its turn goes back to the queue with the next start. The store is its owner's to close.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    const isOver = new AbortController();
    const grace = this.#deps.clock.sleep(DISPOSE_GRACE_MS, isOver.signal).catch(() => undefined);
    await Promise.race([Promise.allSettled(this.#underWay), grace]);
    isOver.abort();
  }

  #pumpDeliveries(messages: readonly OutboundMessage[]): void {
    for (const { chat } of messages) this.#deliveries.get(accountName(chat))?.pump();
  }

  async #track(run: Promise<void>, onEnd: () => void): Promise<void> {
    this.#underWay.add(run);
    this.#watchOutside();
    try {
      await run;
    } finally {
      this.#underWay.delete(run);
      onEnd();
      this.#watchOutside();
    }
  }

  #watchOutside(): void {
    const isBusy = this.#underWay.size > 0;
    this.#outside.set(isBusy ? this.#deps.clock.now() + OUTSIDE_CHECK_MS : undefined);
  }

  #checkOutside(): void {
    if (this.#store.changedOutside()) {
      this.#turns?.onOutsideChange();
      for (const pump of this.#deliveries.values()) pump.pump();
    }
    this.#watchOutside();
  }
}

// What the message bus is made of.

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

// One leader per resource. In the embedded store the home lock makes this process the only one, so
// leading is a queue in memory: nothing durable, nothing stale after a crash, no heartbeat.

export function createLeadership(clock: Clock): MessageBus['lead'] {
  const lanes = createLanes();
  let lastEpoch = 0;
  return (resource, run, signal) =>
    lanes.run(resource, async () => {
      if (signal.aborted) return;
      // Grows over restarts too, without a write.
      lastEpoch = Math.max(lastEpoch + 1, clock.now());
      await run(signal, lastEpoch);
    });
}

// The live topic: pictures of running turns, best effort. Each subscriber holds the newest picture
// per turn and nothing else, so a slow one costs memory for the turns that run, never for history.

/** Turns a subscriber may lag behind on; beyond that the oldest picture is dropped. */
const MAX_HELD_TURNS = 10_000;

/** `shown`: what a subscriber gets of a picture, asked only for those it takes. */
export function createLiveTopic(shown: (update: LiveUpdate) => LiveUpdate): LiveTopic {
  const mailboxes = new Map<AccountName, Set<Mailbox>>();
  return {
    publish(update) {
      for (const mailbox of mailboxes.get(accountName(update.chat)) ?? []) mailbox.put(update);
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
  #wake: (() => void) | undefined;

  put(update: LiveUpdate): void {
    // A turn keeps its place in the line, so one that changes often cannot be starved.
    this.#newest.set(update.turnId, update);
    const [oldest] = this.#newest.keys();
    if (this.#newest.size > MAX_HELD_TURNS && oldest !== undefined) this.#newest.delete(oldest);
    this.#wake?.();
  }

  async *read(
    signal: AbortSignal,
    shown: (update: LiveUpdate) => LiveUpdate,
    onEnd: () => void,
  ): AsyncGenerator<LiveUpdate, void, void> {
    const onAbort = () => this.#wake?.();
    signal.addEventListener('abort', onAbort);
    try {
      while (!signal.aborted) {
        const [update] = this.#newest.values();
        if (update === undefined) {
          await this.#arrival();
        } else {
          this.#newest.delete(update.turnId);
          yield shown(update);
        }
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      onEnd();
    }
  }

  async #arrival(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
  }
}
