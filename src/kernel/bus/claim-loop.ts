// What turns and deliveries have in common: claims due work while there are places, runs each
// claim, wakes at the next due time and ends only when nothing is running. A claim commits together
// with what woke the loop, so it needs no fsync of its own.

import { type Clock, onAbort } from '../../lib/time/clock.ts';
import type { Settlement } from '../message/delivery.ts';
import { shortageOf } from '../message/errors.ts';
import { type AccountName, accountName } from '../message/ids.ts';
import type { DeliveryRecord, Telemetry } from '../observe/telemetry.ts';
import type { AcceptResult, InboundEntry } from './bus.ts';
import type { ClaimedDelivery, Claims } from './store/store.ts';

/** One of the loop's places, held by one claim. */
export interface Place {
  /** Releases it before the work is over: the next claim commits with the writes just begun. */
  free(): void;
}

type ClaimLoopOptions<T> = {
  readonly clock: Clock;
  /** Number of concurrent claims. */
  places(): number;
  /**
   * How long running work may continue after a stop, and after a failure of the store,
   * milliseconds.
   */
  readonly stopGraceMs: number;
  readonly failureGraceMs: number;
  /** Absent: always. After a false result, `wake` is called as soon as it is true again. */
  mayClaim?(): boolean;
  /** `places` is evaluated when the claim is made, which may be later. */
  claim(places: () => number): Promise<Claims<T>>;
  /** Rejects only when the store fails. */
  perform(claimed: T, place: Place): Promise<void>;
  /** The grace period is over: aborts all running work. */
  interrupt(): void;
};

export type ClaimLoop<T> = ReturnType<typeof createClaimLoop<T>>;

export function createClaimLoop<T>(options: ClaimLoopOptions<T>) {
  const over = Promise.withResolvers<void>();
  let usedPlaces = 0;
  let inHand = 0;
  let claimsUnderWay = 0;
  let isClaimQueued = false;
  let isOver = false;
  let failure: unknown;
  const alarm: Alarm = createAlarm(options.clock, () => wake());

  /**
   * Runs until the signal aborts or the store fails, which rejects; then waits for running work.
   */
  async function run(signal: AbortSignal): Promise<void> {
    using _stopping = onAbort(signal, () => stop(options.stopGraceMs));
    wake();
    await over.promise;
    if (failure !== undefined) throw failure;
  }

  /** Claims what is due at the end of the current batch. Cheap if no place is free. */
  function wake(): void {
    if (isOver || isClaimQueued || freePlaces() === 0) return;
    isClaimQueued = true;
    claimsUnderWay += 1;
    let isOpen = true;
    const close = () => {
      if (isOpen) isClaimQueued = false;
      isOpen = false;
    };
    const places = () => {
      close();
      return isOver ? 0 : freePlaces();
    };
    options
      .claim(places)
      .finally(() => {
        // A store that may claim nothing now does not ask for places.
        close();
        claimsUnderWay -= 1;
      })
      .then(
        (found) => start(found),
        (error) => fail(error),
      );
  }

  function freePlaces(): number {
    if (options.mayClaim?.() === false) return 0;
    return Math.max(0, options.places() - usedPlaces);
  }

  function start({ claimed, nextAt }: Claims<T>): void {
    for (const each of claimed) void perform(each);
    if (!isOver && freePlaces() > 0) alarm.set(nextAt);
    checkOver();
  }

  async function perform(claimed: T): Promise<void> {
    const place = takePlace();
    inHand += 1;
    try {
      await options.perform(claimed, place);
    } catch (error) {
      fail(error);
    } finally {
      place.free();
      inHand -= 1;
      checkOver();
    }
  }

  function takePlace(): Place {
    let isHeld = true;
    usedPlaces += 1;
    return {
      free: () => {
        if (!isHeld) return;
        isHeld = false;
        usedPlaces -= 1;
        wake();
      },
    };
  }

  function stop(graceMs: number): void {
    const { clock, interrupt } = options;
    isOver = true;
    alarm.set(undefined);
    if (graceMs === 0) {
      interrupt();
    } else {
      const timer = clock.timer(graceMs, interrupt);
      void over.promise.finally(() => timer[Symbol.dispose]());
    }
    checkOver();
  }

  /** The supervisor restarts the loop, and held claims are recovered. */
  function fail(error: unknown): void {
    failure ??= error;
    isClaimQueued = false;
    if (!isOver) stop(options.failureGraceMs);
    checkOver();
  }

  function checkOver(): void {
    if (isOver && inHand + claimsUnderWay === 0) over.resolve();
  }

  return {
    run,
    wake,
    get isStopping(): boolean {
      return isOver;
    },
  };
}

/**
 * What was done, such as an answer or a send, is not done again for lack of room to note it.
 * @param restMs until the next try; undefined: no further try, the error is thrown
 */
export async function whenThereIsRoom<T>(
  clock: Clock,
  restMs: (what: string, error: unknown) => number | undefined,
  write: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      const what = shortageOf(error);
      const ms = what === undefined ? undefined : restMs(what, error);
      if (ms === undefined) throw error;
      await clock.sleep(ms);
    }
  }
}

// One timer for the next due time. Nothing due, no timer.

type Alarm = ReturnType<typeof createAlarm>;

export function createAlarm(clock: Clock, ring: () => void) {
  let timer: Disposable | undefined;
  let dueAt: number | undefined;

  /** Replaces the time of the alarm; undefined switches it off. Epoch milliseconds. */
  function set(at: number | undefined): void {
    if (at === dueAt) return;
    timer?.[Symbol.dispose]();
    timer = undefined;
    dueAt = at;
    if (at === undefined) return;
    timer = clock.timer(Math.max(0, at - clock.now()), () => {
      dueAt = undefined;
      ring();
    });
  }

  return { set };
}

// Metrics of the bus: accepted messages, and delivery tries.

type Measures = { readonly clock: Clock; readonly telemetry?: Telemetry };

export function measureArrival(
  { clock, telemetry }: Measures,
  { kind, message }: InboundEntry,
  result: AcceptResult | undefined,
): void {
  const taken = kind === 'queue' && result === 'accepted' ? 'queued' : 'other';
  telemetry?.record({
    ...{ kind: 'arrival', at: clock.now(), durationMs: 0, messageId: message.id },
    account: accountName(message.chat),
    status: result === 'duplicate' ? 'duplicate' : taken,
  });
}

const STATUSES: Readonly<Record<Settlement['kind'], DeliveryRecord['status']>> = {
  sent: 'sent',
  retry: 'not_sent',
  dead: 'not_sent',
  unknown: 'unknown',
  stopped: 'not_sent',
};

export type Begun = { readonly at: number; readonly started: number };

export function measureDelivery(
  { clock, telemetry }: Measures,
  account: AccountName,
  { message }: ClaimedDelivery,
  { kind }: Settlement,
  { at, started }: Begun,
): void {
  const durationMs = Math.round(clock.monotonic() - started);
  const known = { at, durationMs, account, messageId: message.id, status: STATUSES[kind] };
  telemetry?.record({ kind: 'delivery', ...known });
}
