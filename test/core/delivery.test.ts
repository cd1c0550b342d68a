import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DeliveryHistory,
  type FailedTry,
  REPEAT_WINDOW_MS,
  retryDelayMs,
  settleFailure,
  settleReconciled,
  type UnknownPolicy,
} from '../../src/kernel/message/delivery.ts';
import { BACKOFF, NEVER, type Remedy } from '../../src/kernel/message/errors.ts';
import { nativeId } from '../../src/kernel/message/ids.ts';

const HOUR_MS = 3_600_000;
const askedToWait = (delayMs: number): Remedy => ({ kind: 'after', delayMs });
const fresh: DeliveryHistory = { attempt: 1, queuedAt: 0, inDoubt: false, wasRepeated: false };
const terms = (onUnknown: UnknownPolicy, lifetimeMs = 4 * HOUR_MS) => ({ onUnknown, lifetimeMs });
const refused: FailedTry = { certainty: 'not_sent', remedy: BACKOFF, reason: 'busy' };
const broken: FailedTry = { certainty: 'unknown', remedy: BACKOFF, reason: 'reset' };

describe('what becomes of a message after a failed try', () => {
  it('doubles the wait from half a second up to a minute', () => {
    expect([1, 2, 3, 8, 50].map(retryDelayMs)).toEqual([500, 1000, 2000, 60_000, 60_000]);
  });

  it('waits as long as the platform asked', () => {
    const asked = { ...refused, remedy: askedToWait(42_000) };
    expect(settleFailure(asked, fresh, terms('hold'), 1000)).toMatchObject({ at: 43_000 });
  });

  it('does not wait for a time at which the answer is worth nothing', () => {
    const asked = { ...refused, remedy: askedToWait(5 * HOUR_MS) };
    expect(settleFailure(asked, fresh, terms('hold'), 0).kind).toBe('dead');
  });

  it('repeats within a quarter of an hour and no later', () => {
    const policy = terms('resend');
    const edge = REPEAT_WINDOW_MS - 500;
    expect(settleFailure(broken, fresh, policy, edge).kind).toBe('retry');
    expect(settleFailure(broken, fresh, policy, edge + 1).kind).toBe('unknown');
  });

  it('does not call dead what may have arrived', () => {
    const doubtful = { ...fresh, inDoubt: true };
    const never = { ...refused, remedy: NEVER };
    expect(settleFailure(never, doubtful, terms('idempotent'), 0).kind).toBe('unknown');
    expect(settleFailure(never, fresh, terms('idempotent'), 0).kind).toBe('dead');
  });

  it('asks a platform that can tell even where sending again is useless', () => {
    const never = { ...broken, remedy: NEVER };
    expect(settleFailure(never, fresh, terms('reconcile'), 0).kind).toBe('retry');
    expect(settleFailure(never, fresh, terms('idempotent'), 0).kind).toBe('unknown');
  });

  it('sends again at most once what the platform does not have', () => {
    const policy = terms('reconcile');
    const doubtful = { ...fresh, inDoubt: true };
    expect(settleReconciled('absent', doubtful, policy, 0).kind).toBe('repeat');
    const repeated = { ...doubtful, wasRepeated: true };
    expect(settleReconciled('absent', repeated, policy, 0).kind).toBe('unknown');
    const found = { nativeIds: [nativeId('1')] };
    expect(settleReconciled(found, repeated, policy, 0).kind).toBe('sent');
    expect(settleReconciled(undefined, doubtful, policy, 5 * HOUR_MS).kind).toBe('unknown');
  });

  it('never repeats a try in doubt twice, whatever happens in between', () => {
    const tries = fc.array(fc.constantFrom(refused, broken), { maxLength: 12 });
    const policies = fc.constantFrom<UnknownPolicy>('hold', 'resend');
    fc.assert(
      fc.property(tries, policies, (failures, onUnknown) => {
        let history = fresh;
        let inDoubt = 0;
        for (const failed of failures) {
          if (failed === broken) inDoubt += 1;
          const settled = settleFailure(failed, history, terms(onUnknown), 0);
          if (settled.kind !== 'retry') break;
          history = { ...history, ...settled, attempt: history.attempt + 1 };
        }
        expect(inDoubt).toBeLessThanOrEqual(onUnknown === 'hold' ? 1 : 2);
      }),
    );
  });
});
