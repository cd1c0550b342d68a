// What the bus tells those who measure: messages that came in, and tries to deliver.

import { type AccountName, accountName } from '../core/account.ts';
import type { Settlement } from '../core/delivery.ts';
import type { Clock } from '../lib/clock.ts';
import type { ClaimedDelivery } from '../store/store.ts';
import type { DeliveryRecord, Telemetry } from '../telemetry/telemetry.ts';
import type { AcceptResult, InboundEntry } from './bus.ts';

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
