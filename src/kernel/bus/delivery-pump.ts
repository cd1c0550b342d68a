// Delivers one account's messages: claims the oldest of each chat as long as there are places and
// has each sent. The claim is committed before the courier sends, and the next of a chat is claimed
// in the transaction that settles the one before.

import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Settlement } from '../message/delivery.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import { measureDelivery } from './alarm.ts';
import type { Courier, DeliverOptions } from './bus.ts';
import { ClaimLoop, type Place } from './claim-loop.ts';
import { settleInterrupted, trySend } from './send-try.ts';
import type { BusStore, ClaimedDelivery } from './store/store.ts';

/** Longest try to send one message; a channel's own deadlines are shorter. */
const SEND_DEADLINE_MS = 5 * 60_000;
/** What is being sent when the pump is stopped may take this long to finish. */
const STOP_GRACE_MS = 5000;

export type DeliveryPumpDeps = {
  readonly store: BusStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly telemetry?: Telemetry;
};

export class DeliveryPump {
  readonly #deps: DeliveryPumpDeps;
  readonly #courier: Courier;
  readonly #signal: AbortSignal;
  readonly #sending = new Set<AbortController>();
  readonly #loop: ClaimLoop<ClaimedDelivery>;

  constructor(courier: Courier, { signal, concurrency }: DeliverOptions, deps: DeliveryPumpDeps) {
    this.#courier = courier;
    this.#signal = signal;
    this.#deps = deps;
    this.#loop = new ClaimLoop({
      clock: deps.clock,
      places: concurrency,
      mayClaim: () => courier.readiness?.isReady !== false,
      stopGraceMs: STOP_GRACE_MS,
      failureGraceMs: STOP_GRACE_MS,
      claim: (places) =>
        deps.store.claimDeliveries(courier.account, places, courier.announcesRequests),
      perform: (delivery, place) => this.#perform(delivery, place),
      interrupt: () => this.#interrupt(),
    });
  }

  /** Delivers until the signal aborts or the store fails, then waits for what is being sent. */
  async run(): Promise<void> {
    await this.#recover();
    const waking = this.#courier.readiness?.onReady(() => this.pump());
    try {
      await this.#loop.run(this.#signal);
    } finally {
      waking?.[Symbol.dispose]();
    }
  }

  pump(): void {
    this.#loop.wake();
  }

  async #recover(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const interrupted = await store.recoverDeliveries(this.#courier.account);
    const settled = interrupted.map((delivery) =>
      this.#settle(delivery, settleInterrupted(delivery, this.#courier, clock.now())),
    );
    await Promise.all(settled);
    if (settled.length === 0) return;
    const channel = this.#courier.account;
    log.info('deliveries of an earlier process recovered', { channel, recovered: settled.length });
  }

  async #perform(delivery: ClaimedDelivery, place: Place): Promise<void> {
    const { store, clock } = this.#deps;
    const controller = new AbortController();
    const { signal } = controller;
    const abort = () => controller.abort(new Error('the send took too long'));
    const deadline = clock.timer(SEND_DEADLINE_MS, abort);
    this.#sending.add(controller);
    const from = { at: clock.now(), started: clock.monotonic() };
    try {
      const settlement = await trySend(delivery, { courier: this.#courier, store, clock, signal });
      this.#report(delivery, settlement);
      measureDelivery(this.#deps, this.#courier.account, delivery, settlement, from);
      const settled = this.#settle(delivery, settlement);
      place.free();
      await settled;
    } finally {
      deadline[Symbol.dispose]();
      this.#sending.delete(controller);
    }
  }

  #settle(delivery: ClaimedDelivery, settlement: Settlement): Promise<unknown> {
    const settled = this.#deps.store.settle(delivery, settlement);
    const isOver = settlement.kind === 'dead' || settlement.kind === 'unknown';
    if (isOver) this.#courier.setAside?.(delivery.message, settlement);
    return settled;
  }

  #interrupt(): void {
    for (const controller of this.#sending) controller.abort(new Error('shutting down'));
  }

  #report(delivery: ClaimedDelivery, settlement: Settlement): void {
    if (settlement.kind === 'sent') return;
    const { id, attempt } = delivery;
    const { kind, reason } = settlement;
    const fields = { channel: this.#courier.account, id, attempt, reason };
    if (kind === 'retry') this.#deps.log.info('send failed, will be tried again', fields);
    else if (kind === 'stopped') this.#deps.log.info('message not sent any further', fields);
    else this.#deps.log.warn('message not delivered', { ...fields, state: kind });
  }
}
