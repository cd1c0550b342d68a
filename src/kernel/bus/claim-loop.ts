// What turns and deliveries have in common: claims what is due while there are places, has each
// claim worked on, wakes at the next due time and ends only when nothing is in hand any more. A
// claim commits together with what woke the loop, so it needs no fsync of its own.

import type { Clock } from '../../lib/time/clock.ts';
import { type AccountName, accountName } from '../message/account.ts';
import type { Settlement } from '../message/delivery.ts';
import type { DeliveryRecord, Telemetry } from '../observe/telemetry.ts';
import type { AcceptResult, InboundEntry } from './bus.ts';
import type { ClaimedDelivery, Claims } from './store/store.ts';

/** One of the loop's places, held by one claim. */
export interface Place {
  /** Gives it up before the work is over: the next claim commits with the writes just begun. */
  free(): void;
}

export type ClaimLoopOptions<T> = {
  readonly clock: Clock;
  /** Claims worked on at once. */
  readonly places: number;
  /** How long work in hand may go on after a stop, and after a failure of the store, milliseconds. */
  readonly stopGraceMs: number;
  readonly failureGraceMs: number;
  /** Absent: always. After a false answer, `wake` is called as soon as it is true again. */
  mayClaim?(): boolean;
  /** `places` is asked when the claim is made, which may be later. */
  claim(places: () => number): Promise<Claims<T>>;
  /** Rejects only when the store fails. */
  perform(claimed: T, place: Place): Promise<void>;
  /** The grace is over: breaks off all work in hand. */
  interrupt(): void;
};

export class ClaimLoop<T> {
  readonly #options: ClaimLoopOptions<T>;
  readonly #alarm: Alarm;
  readonly #over = Promise.withResolvers<void>();
  #usedPlaces = 0;
  #inHand = 0;
  #claimsUnderWay = 0;
  #isClaimQueued = false;
  #isStopping = false;
  #failure: unknown;

  constructor(options: ClaimLoopOptions<T>) {
    this.#options = options;
    this.#alarm = new Alarm(options.clock, () => this.wake());
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Until the signal aborts or the store fails, which it rejects with; then waits for what is in hand. */
  async run(signal: AbortSignal): Promise<void> {
    const onAbort = () => this.#stop(this.#options.stopGraceMs);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    this.wake();
    try {
      await this.#over.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Claims what is due at the end of the batch under way. Cheap where no place is free. */
  wake(): void {
    if (this.#isStopping || this.#isClaimQueued || this.#freePlaces() === 0) return;
    this.#isClaimQueued = true;
    this.#claimsUnderWay += 1;
    const places = () => {
      this.#isClaimQueued = false;
      return this.#isStopping ? 0 : this.#freePlaces();
    };
    this.#options
      .claim(places)
      .finally(() => {
        this.#claimsUnderWay -= 1;
      })
      .then(
        (found) => this.#start(found),
        (error) => this.#fail(error),
      );
  }

  #freePlaces(): number {
    if (this.#options.mayClaim?.() === false) return 0;
    return Math.max(0, this.#options.places - this.#usedPlaces);
  }

  #start({ claimed, nextAt }: Claims<T>): void {
    for (const each of claimed) void this.#perform(each);
    if (!this.#isStopping && this.#freePlaces() > 0) this.#alarm.set(nextAt);
    this.#checkOver();
  }

  async #perform(claimed: T): Promise<void> {
    const place = this.#takePlace();
    this.#inHand += 1;
    try {
      await this.#options.perform(claimed, place);
    } catch (error) {
      this.#fail(error);
    } finally {
      place.free();
      this.#inHand -= 1;
      this.#checkOver();
    }
  }

  #takePlace(): Place {
    let isHeld = true;
    this.#usedPlaces += 1;
    return {
      free: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#usedPlaces -= 1;
        this.wake();
      },
    };
  }

  #stop(graceMs: number): void {
    const { clock, interrupt } = this.#options;
    this.#isStopping = true;
    this.#alarm.set(undefined);
    if (graceMs === 0) {
      interrupt();
    } else {
      const timer = clock.timer(graceMs, interrupt);
      void this.#over.promise.finally(() => timer[Symbol.dispose]());
    }
    this.#checkOver();
  }

  /** Whoever supervises this starts again, and what was held is recovered. */
  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#isClaimQueued = false;
    if (!this.#isStopping) this.#stop(this.#options.failureGraceMs);
    this.#checkOver();
  }

  #checkOver(): void {
    if (this.#isStopping && this.#inHand + this.#claimsUnderWay === 0) this.#over.resolve();
  }
}

// One timer for the next thing that falls due. Nothing due, no timer.

export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #timer: Disposable | undefined;
  #dueAt: number | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Replaces the time of the alarm; undefined switches it off. Epoch milliseconds. */
  set(at: number | undefined): void {
    if (at === this.#dueAt) return;
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    this.#dueAt = at;
    if (at === undefined) return;
    this.#timer = this.#clock.timer(Math.max(0, at - this.#clock.now()), () => {
      this.#dueAt = undefined;
      this.#ring();
    });
  }
}

// What the bus tells those who measure: messages that came in, and tries to deliver.

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
