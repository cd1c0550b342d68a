// Delivers one channel's messages: claims the oldest of each chat as long as there are places and
// has each sent. The claim is committed before the courier sends; it commits together with what
// woke it, and the next of a chat is claimed in the transaction that settles the one before.

import type { Settlement } from '../core/delivery.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { BusStore, ClaimedDelivery, Claims } from '../store/store.ts';
import { Alarm } from './alarm.ts';
import type { Courier, DeliverOptions } from './bus.ts';
import { settleInterrupted, trySend } from './send-try.ts';

/** Longest try to send one message; a channel's own deadlines are shorter. */
const SEND_DEADLINE_MS = 5 * 60_000;
/** What is being sent when the pump is stopped may take this long to finish. */
const STOP_GRACE_MS = 5000;

export type DeliveryPumpDeps = {
  readonly store: BusStore;
  readonly clock: Clock;
  readonly log: Logger;
};

export class DeliveryPump {
  readonly #deps: DeliveryPumpDeps;
  readonly #courier: Courier;
  readonly #options: DeliverOptions;
  readonly #sending = new Set<AbortController>();
  readonly #alarm: Alarm;
  readonly #over = Promise.withResolvers<void>();
  #usedPlaces = 0;
  #claimsUnderWay = 0;
  #isClaimQueued = false;
  #isStopping = false;
  #failure: unknown;

  constructor(courier: Courier, options: DeliverOptions, deps: DeliveryPumpDeps) {
    this.#courier = courier;
    this.#options = options;
    this.#deps = deps;
    this.#alarm = new Alarm(deps.clock, () => this.pump());
  }

  /** Delivers until the signal aborts or the store fails, then waits for what is being sent. */
  async run(): Promise<void> {
    const { signal } = this.#options;
    await this.#recover();
    const onAbort = () => this.#stop(STOP_GRACE_MS);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    this.pump();
    try {
      await this.#over.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Claims what is due at the end of the batch under way. Cheap where no place is free. */
  pump(): void {
    if (this.#isStopping || this.#isClaimQueued || this.#freePlaces() === 0) return;
    this.#isClaimQueued = true;
    this.#claimsUnderWay += 1;
    const places = () => {
      this.#isClaimQueued = false;
      return this.#isStopping ? 0 : this.#freePlaces();
    };
    const claims = this.#deps.store.claimDeliveries(this.#courier.channel, places);
    claims
      .finally(() => {
        this.#claimsUnderWay -= 1;
      })
      .then(
        (found) => this.#start(found),
        (error) => this.#fail(error),
      );
  }

  async #recover(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const interrupted = await store.recoverDeliveries(this.#courier.channel);
    const settled = interrupted.map((delivery) =>
      store.settle(delivery, settleInterrupted(delivery, this.#courier, clock.now())),
    );
    await Promise.all(settled);
    if (settled.length === 0) return;
    const channel = this.#courier.channel;
    log.info('deliveries of an earlier process recovered', { channel, recovered: settled.length });
  }

  #freePlaces(): number {
    return Math.max(0, this.#options.concurrency - this.#usedPlaces);
  }

  #start({ claimed, nextAt }: Claims<ClaimedDelivery>): void {
    for (const delivery of claimed) void this.#perform(delivery);
    if (!this.#isStopping && this.#freePlaces() > 0) this.#alarm.set(nextAt);
    this.#checkOver();
  }

  async #perform(delivery: ClaimedDelivery): Promise<void> {
    const { store, clock } = this.#deps;
    const controller = new AbortController();
    const { signal } = controller;
    const abort = () => controller.abort(new Error('the send took too long'));
    const deadline = clock.timer(SEND_DEADLINE_MS, abort);
    this.#sending.add(controller);
    this.#usedPlaces += 1;
    try {
      const settlement = await trySend(delivery, { courier: this.#courier, store, clock, signal });
      this.#report(delivery, settlement);
      const settled = store.settle(delivery, settlement);
      this.#usedPlaces -= 1;
      this.pump();
      await settled;
    } catch (error) {
      this.#fail(error);
    } finally {
      deadline[Symbol.dispose]();
      this.#sending.delete(controller);
      this.#checkOver();
    }
  }

  #report(delivery: ClaimedDelivery, settlement: Settlement): void {
    if (settlement.kind === 'sent') return;
    const { id, attempt } = delivery;
    const { kind, reason } = settlement;
    const fields = { channel: this.#courier.channel, id, attempt, reason };
    if (kind === 'retry') this.#deps.log.info('send failed, will be tried again', fields);
    else this.#deps.log.warn('message not delivered', { ...fields, state: kind });
  }

  #stop(graceMs: number): void {
    this.#isStopping = true;
    this.#alarm.set(undefined);
    const timer = this.#deps.clock.timer(graceMs, () => {
      for (const controller of this.#sending) controller.abort(new Error('shutting down'));
    });
    void this.#over.promise.finally(() => timer[Symbol.dispose]());
    this.#checkOver();
  }

  /** The store failed: whoever supervises this starts again, and what was held is recovered. */
  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#isClaimQueued = false;
    if (!this.#isStopping) this.#stop(STOP_GRACE_MS);
    this.#checkOver();
  }

  #checkOver(): void {
    if (this.#isStopping && this.#sending.size + this.#claimsUnderWay === 0) this.#over.resolve();
  }
}
