// Delivers one account's messages: claims the oldest of each chat while there are places and sends
// each. The claim is committed before the courier sends, and the next of a chat is claimed in the
// transaction that settles the previous one.

import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import {
  type DeliveryHistory,
  type FailedTry,
  isExpired,
  type Settlement,
  setAside,
  settleFailure,
  settleReconciled,
} from '../message/delivery.ts';
import { after, BACKOFF, DeliveryError, NEVER } from '../message/errors.ts';
import type { NativeId } from '../message/ids.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import type { Courier, DeliverOptions, SendContext } from './bus.ts';
import {
  type ClaimLoop,
  createClaimLoop,
  measureDelivery,
  type Place,
  whenThereIsRoom,
} from './claim-loop.ts';
import type { BusStore, ClaimedDelivery } from './store/store.ts';

/** Longest try to send one message; a channel's own deadlines are shorter. */
const SEND_DEADLINE_MS = 5 * 60_000;
/** How long a current send may take after the pump is stopped. */
const STOP_GRACE_MS = 5000;
/** Between two tries to note something for which the disk has no room. */
const ROOM_MS = 1000;

type DeliveryPumpDeps = {
  readonly store: BusStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly telemetry?: Telemetry;
};

export type DeliveryPump = ReturnType<typeof createDeliveryPump>;

export function createDeliveryPump(
  courier: Courier,
  { signal, concurrency }: DeliverOptions,
  deps: DeliveryPumpDeps,
) {
  const sending = new Set<AbortController>();
  const loop: ClaimLoop<ClaimedDelivery> = createClaimLoop({
    clock: deps.clock,
    places: () => concurrency,
    mayClaim: () => courier.readiness?.isReady !== false,
    stopGraceMs: STOP_GRACE_MS,
    failureGraceMs: STOP_GRACE_MS,
    claim: (places) =>
      deps.store.claimDeliveries(courier.account, places, courier.announcesRequests),
    perform: (delivery, place) => perform(delivery, place),
    interrupt: () => interrupt(),
  });

  /** Delivers until the signal aborts or the store fails, then waits for current sends. */
  async function run(): Promise<void> {
    await recover();
    using _waking = courier.readiness?.onReady(pump);
    await loop.run(signal);
  }

  function pump(): void {
    loop.wake();
  }

  async function recover(): Promise<void> {
    const { store, clock, log } = deps;
    const interrupted = await store.recoverDeliveries(courier.account);
    const settled = interrupted.map((delivery) =>
      settle(delivery, settleInterrupted(delivery, courier, clock.now())),
    );
    await Promise.all(settled);
    if (settled.length === 0) return;
    const channel = courier.account;
    log.info('deliveries of an earlier process recovered', { channel, recovered: settled.length });
  }

  async function perform(delivery: ClaimedDelivery, place: Place): Promise<void> {
    const { store, clock } = deps;
    const controller = new AbortController();
    const { signal } = controller;
    const abort = () => controller.abort(new Error('the send took too long'));
    using _deadline = clock.timer(SEND_DEADLINE_MS, abort);
    sending.add(controller);
    const from = { at: clock.now(), started: clock.monotonic() };
    try {
      // A new text is prepared while the disk writes the claim: its announced request waits for it.
      const isAnnounced = courier.announcesRequests === true && delivery.isRequesting;
      if (!isAnnounced) await store.stored();
      const settlement = await trySend(delivery, { courier, store, clock, signal, noted });
      report(delivery, settlement);
      measureDelivery(deps, courier.account, delivery, settlement, from);
      const settled = settle(delivery, settlement);
      place.free();
      await settled;
    } finally {
      sending.delete(controller);
    }
  }

  function settle(delivery: ClaimedDelivery, settlement: Settlement): Promise<unknown> {
    const settled = noted(() => deps.store.settle(delivery, settlement));
    const isOver = settlement.kind === 'dead' || settlement.kind === 'unknown';
    if (isOver) courier.setAside?.(delivery.message, settlement);
    return settled;
  }

  function noted<T>(write: () => Promise<T>): Promise<T> {
    const restMs = () => (signal.aborted || loop.isStopping ? undefined : ROOM_MS);
    return whenThereIsRoom(deps.clock, restMs, write);
  }

  function interrupt(): void {
    for (const controller of sending) controller.abort(new Error('shutting down'));
  }

  function report(delivery: ClaimedDelivery, settlement: Settlement): void {
    if (settlement.kind === 'sent') return;
    const { id, attempt } = delivery;
    const { kind, reason } = settlement;
    const fields = { channel: courier.account, id, attempt, reason };
    if (kind === 'retry') deps.log.info('send failed, will be tried again', fields);
    else if (kind === 'stopped') deps.log.info('message not sent', fields);
    else deps.log.warn('message not delivered', { ...fields, state: kind });
  }

  return { run, pump };
}

// One try to send one message: resolves the doubt that an earlier try left, then lets the courier
// send, and decides what becomes of the message. The rules are in kernel/delivery.

const STOPPED = 'the rest is no longer wanted';

type SendTryDeps = {
  readonly courier: Courier;
  readonly store: BusStore;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Waits for room on the disk. */
  noted<T>(write: () => Promise<T>): Promise<T>;
};

async function trySend(delivery: ClaimedDelivery, deps: SendTryDeps): Promise<Settlement> {
  if (isExpired(delivery, deps.courier, deps.clock.now())) {
    return setAside(delivery.inDoubt, 'not delivered in time');
  }
  const { reconcile, onUnknown } = deps.courier;
  if (!delivery.inDoubt || onUnknown !== 'reconcile' || reconcile === undefined) {
    return send(delivery, deps);
  }
  const verdict = await askPlatform(delivery, deps);
  if (verdict.kind !== 'repeat') return verdict;
  await deps.store.markRepeat(delivery);
  return send({ ...delivery, inDoubt: false, wasRepeated: true }, deps);
}

async function askPlatform(
  delivery: ClaimedDelivery,
  deps: SendTryDeps,
): Promise<ReturnType<typeof settleReconciled>> {
  const { courier, clock, signal } = deps;
  try {
    const found = await courier.reconcile?.(delivery.message, signal);
    return settleReconciled(found, delivery, courier, clock.now());
  } catch (error) {
    const failed = { ...failedTryOf(error, courier), certainty: 'not_sent' } as const;
    return settleFailure(failed, delivery, courier, clock.now());
  }
}

async function send(delivery: ClaimedDelivery, deps: SendTryDeps): Promise<Settlement> {
  const { courier, clock, signal, store, noted } = deps;
  const isAnnouncing = courier.announcesRequests === true;
  let last: NativeId | undefined;
  let history: DeliveryHistory = delivery;
  let isRequesting = !isAnnouncing;
  /** With the claim. */
  let isRecorded = delivery.isRequesting;
  let isStopped = false;
  const goesOn = (isWanted: boolean) => {
    isStopped = !isWanted;
    if (isStopped) throw new DeliveryError(STOPPED, { certainty: 'not_sent', remedy: NEVER });
  };
  const context: SendContext = {
    signal,
    attempt: delivery.attempt,
    textAt: delivery.textAt,
    sentParts: delivery.sentParts,
    repeatsUnknown: delivery.inDoubt,
    ...(delivery.draft === undefined ? {} : { draft: delivery.draft }),
    async requestBegins() {
      goesOn(await (isRecorded ? store.isStillWanted : store.requestBegins)(delivery));
      isRequesting = true;
    },
    async partSent(id, isLast = false) {
      // The doubt was about this part.
      history = { ...history, inDoubt: false, wasRepeated: false };
      isRecorded = false;
      if (isLast) last = id;
      else goesOn(await noted(() => store.partSent(delivery, id)));
      // Not before it is noted: it would be sent again.
      isRequesting = !isAnnouncing;
    },
  };
  try {
    const { nativeIds } = await courier.send(delivery.message, context);
    return { kind: 'sent', nativeIds };
  } catch (error) {
    const part = last;
    if (part !== undefined) await noted(() => store.partSent(delivery, part));
    if (isStopped) return { kind: 'stopped', reason: STOPPED };
    const failed = failedTryOf(error, courier);
    const certain = isRequesting ? failed : ({ ...failed, certainty: 'not_sent' } as const);
    return settleFailure(certain, history, courier, clock.now());
  }
}

/** An error that does not say so leaves open whether the message arrived. */
function failedTryOf(error: unknown, { readiness }: Courier): FailedTry {
  const unready = readiness?.isReady === false ? { isUnready: true as const } : {};
  if (error instanceof DeliveryError) {
    const { certainty, remedy, message: reason } = error;
    return { certainty, remedy, reason, ...unready };
  }
  return { certainty: 'unknown', remedy: BACKOFF, reason: String(error), ...unready };
}

/** What becomes of a message that an earlier process was sending when it ended. */
function settleInterrupted(delivery: ClaimedDelivery, courier: Courier, now: number): Settlement {
  const reason = 'the process ended while it was being sent';
  const certainty = delivery.isRequesting ? 'unknown' : 'not_sent';
  const failed: FailedTry = { certainty, remedy: after(0), reason };
  return settleFailure(failed, delivery, courier, now);
}
