// One try to send one message: settles the doubt an earlier try left, then lets the courier send,
// and says what becomes of the message. The rules are in core/delivery.

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
import type { Courier, SendContext } from './bus.ts';
import type { BusStore, ClaimedDelivery } from './store/store.ts';

const STOPPED = 'the rest is not to be sent any more';

export type SendTryDeps = {
  readonly courier: Courier;
  readonly store: BusStore;
  readonly clock: Clock;
  readonly signal: AbortSignal;
};

export async function trySend(delivery: ClaimedDelivery, deps: SendTryDeps): Promise<Settlement> {
  if (isExpired(delivery, deps.courier, deps.clock.now())) {
    return setAside(delivery.inDoubt, 'not delivered while it was worth delivering');
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
  const { courier, clock, signal, store } = deps;
  const isAnnouncing = courier.announcesRequests === true;
  let last: NativeId | undefined;
  let history: DeliveryHistory = delivery;
  let isRequesting = !isAnnouncing;
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
      goesOn(await store.requestBegins(delivery));
      isRequesting = true;
    },
    async partSent(id, isLast = false) {
      // What was in doubt was about this part.
      history = { ...history, inDoubt: false, wasRepeated: false };
      isRequesting = !isAnnouncing;
      if (isLast) last = id;
      else goesOn(await store.partSent(delivery, id));
    },
  };
  try {
    const { nativeIds } = await courier.send(delivery.message, context);
    return { kind: 'sent', nativeIds };
  } catch (error) {
    if (last !== undefined) await store.partSent(delivery, last);
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
export function settleInterrupted(
  delivery: ClaimedDelivery,
  courier: Courier,
  now: number,
): Settlement {
  const reason = 'the process ended while it was being sent';
  const certainty = delivery.isRequesting ? 'unknown' : 'not_sent';
  const failed: FailedTry = { certainty, remedy: after(0), reason };
  return settleFailure(failed, delivery, courier, now);
}
