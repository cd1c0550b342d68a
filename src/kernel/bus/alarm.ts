// One timer for the next thing that falls due. Nothing due, no timer.

import type { Clock } from '../../lib/time/clock.ts';
import { type AccountName, accountName } from '../message/account.ts';
import type { Settlement } from '../message/delivery.ts';
import type { DeliveryRecord, Telemetry } from '../observe/telemetry.ts';
import type { AcceptResult, InboundEntry } from './bus.ts';
import type { ClaimedDelivery } from './store/store.ts';

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
