// What becomes of an outbound message after a try to send it: pure decisions from what is known
// about the try. A message that may have arrived is never sent again unless its channel's policy
// makes the repeat harmless, visible or certainly needed.

import { t } from '../../lib/texts.ts';
import type { Remedy } from './errors.ts';
import type { NativeId } from './ids.ts';

/** What to do when it is unknown whether a send arrived. */
export type UnknownPolicy =
  /** Sending the same again is harmless (the id is ours, or it is an edit). */
  | 'idempotent'
  /** Ask the platform by `reconcile`, then send again at most once. */
  | 'reconcile'
  /** One marked retry within 15 minutes of the answer's creation, else set aside as unknown. */
  | 'resend'
  /** Never send again; set aside as unknown. */
  | 'hold';

/** A marked repeat is sent only this long after the answer was queued. */
export const REPEAT_WINDOW_MS = 15 * 60_000;
const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 60_000;

/** The durable facts about a message before the current try. */
export type DeliveryHistory = {
  /** Number of tries, including the current one. */
  readonly attempt: number;
  /** Epoch milliseconds. */
  readonly queuedAt: number;
  /** An earlier try may have arrived. */
  readonly inDoubt: boolean;
  /** It was already sent again after a try in doubt. */
  readonly wasRepeated: boolean;
};

type DeliveryTerms = { readonly onUnknown: UnknownPolicy; readonly lifetimeMs: number };

export type FailedTry = {
  readonly certainty: 'not_sent' | 'unknown';
  readonly remedy: Remedy;
  readonly reason: string;
  /**
   * The channel has no connection: the message waits for the next one, and this does not count as a
   * try.
   */
  readonly isUnready?: true;
};

export type Settlement =
  | { readonly kind: 'sent'; readonly nativeIds: readonly NativeId[] }
  | {
      readonly kind: 'retry';
      /** Epoch milliseconds. */
      readonly at: number;
      readonly reason: string;
      readonly inDoubt: boolean;
      readonly wasRepeated: boolean;
      readonly isUncounted?: true;
    }
  | SetAside
  /** A person stopped it: the unsent rest is not sent any more. */
  | { readonly kind: 'stopped'; readonly reason: string };

/** No further try is made. `isOwnRule`: forbidden by a rule of this program. */
export type SetAside = {
  readonly kind: 'dead' | 'unknown';
  readonly reason: string;
  readonly isOwnRule?: true;
};

/** The wait before the try after `failures` failed ones: 0.5 s doubling up to 60 s. */
export function retryDelayMs(failures: number): number {
  return Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** Math.max(0, failures - 1));
}

export function isExpired(history: DeliveryHistory, terms: DeliveryTerms, now: number): boolean {
  return now > history.queuedAt + terms.lifetimeMs;
}

/** No further try; `unknown` if a try may have arrived. */
export function setAside(inDoubt: boolean, reason: string): SetAside {
  return { kind: inDoubt ? 'unknown' : 'dead', reason };
}

export function settleFailure(
  failed: FailedTry,
  history: DeliveryHistory,
  terms: DeliveryTerms,
  now: number,
): Settlement {
  const inDoubt = history.inDoubt || failed.certainty === 'unknown';
  const at = now + delayOf(failed.remedy, history.attempt);
  const { reason } = failed;
  if (isExpired(history, terms, at)) return setAside(inDoubt, t`${reason}; no time left`);
  if (failed.certainty === 'not_sent') {
    if (failed.remedy.kind === 'never') {
      const aside = setAside(inDoubt, reason);
      return failed.remedy.isOwnRule === true ? { ...aside, isOwnRule: true } : aside;
    }
    if (failed.isUnready) {
      const { wasRepeated } = history;
      return { kind: 'retry', at: now, reason, inDoubt, wasRepeated, isUncounted: true };
    }
    return { kind: 'retry', at, reason, inDoubt, wasRepeated: history.wasRepeated };
  }
  if (!mayRepeat(failed, history, terms, at)) return setAside(true, reason);
  const wasRepeated = history.wasRepeated || terms.onUnknown === 'resend';
  return { kind: 'retry', at, reason, inDoubt, wasRepeated };
}

function delayOf(remedy: Remedy, attempt: number): number {
  return remedy.kind === 'after' ? remedy.delayMs : retryDelayMs(attempt);
}

/** Whether a try in doubt may be followed by another (or by asking the platform). */
function mayRepeat(
  failed: FailedTry,
  history: DeliveryHistory,
  terms: DeliveryTerms,
  at: number,
): boolean {
  switch (terms.onUnknown) {
    case 'hold':
      return false;
    case 'reconcile':
      return true;
    case 'idempotent':
      return failed.remedy.kind !== 'never';
    case 'resend':
      return (
        failed.remedy.kind !== 'never' &&
        !history.wasRepeated &&
        at <= history.queuedAt + REPEAT_WINDOW_MS
      );
  }
}

/** What a platform's answer about a message in doubt means; `repeat`: send it again, once. */
export function settleReconciled(
  found: { readonly nativeIds: readonly NativeId[] } | 'absent' | undefined,
  history: DeliveryHistory,
  terms: DeliveryTerms,
  now: number,
): Settlement | { readonly kind: 'repeat' } {
  if (found === 'absent') {
    return history.wasRepeated
      ? setAside(true, t`sent twice and not found on the platform`)
      : { kind: 'repeat' };
  }
  if (found !== undefined) return { kind: 'sent', nativeIds: found.nativeIds };
  const at = now + retryDelayMs(history.attempt);
  const reason = t`the platform cannot tell yet whether it arrived`;
  if (isExpired(history, terms, at)) return setAside(true, reason);
  return { kind: 'retry', at, reason, inDoubt: true, wasRepeated: history.wasRepeated };
}
