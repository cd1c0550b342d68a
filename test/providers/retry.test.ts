import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ProviderFailure } from '../../src/kernel/message/errors.ts';
import {
  decideRetry,
  type FailedTry,
  LONGEST_HINTED_WAIT_MS,
} from '../../src/providers/rules/provider-failure.ts';

const POLICY = { maxRetries: 3, minMs: 1000, maxMs: 30_000 };
const RETRY = (delayMs: number) => ({ action: 'retry', delayMs });
const FALL_OVER = { action: 'fall_over' };
const GIVE_UP = { action: 'give_up' };

const after = (failure: ProviderFailure, more: Partial<FailedTry> = {}): FailedTry => ({
  failure,
  retriesUsed: 0,
  outputShown: false,
  fallbackLeft: false,
  isFailing: false,
  jitter: 0.5,
  ...more,
});

const server: ProviderFailure = { kind: 'server', status: 500 };
const limited = (retryAfterMs: number): ProviderFailure => ({ kind: 'rate_limited', retryAfterMs });

const TABLE: readonly (readonly [string, FailedTry, object])[] = [
  ['a first server error waits one second', after(server), RETRY(1000)],
  ['a second one waits two', after(server, { retriesUsed: 1 }), RETRY(2000)],
  ['a third one waits four', after(server, { retriesUsed: 2 }), RETRY(4000)],
  ['after three retries it is over', after(server, { retriesUsed: 3 }), GIVE_UP],
  ['or another model answers', after(server, { retriesUsed: 3, fallbackLeft: true }), FALL_OVER],
  [
    'what failed the call before as well leaves the answer to another model',
    after(server, { isFailing: true, fallbackLeft: true }),
    FALL_OVER,
  ],
  ['and is tried again where there is none', after(server, { isFailing: true }), RETRY(1000)],
  ['a lost connection is tried again', after({ kind: 'network' }), RETRY(1000)],
  ['an unreadable answer is tried again', after({ kind: 'malformed' }), RETRY(1000)],
  ['a hint longer than the backoff is kept to', after(limited(9000)), RETRY(9000)],
  ['a hint shorter than the backoff changes nothing', after(limited(10)), RETRY(1000)],
  ['a hint at the limit is waited for', after(limited(LONGEST_HINTED_WAIT_MS)), RETRY(60_000)],
  ['a hint beyond it is not', after(limited(60_001)), GIVE_UP],
  ['but another model may answer', after(limited(60_001), { fallbackLeft: true }), FALL_OVER],
  [
    'a silent server gets one more try',
    after({ kind: 'timeout', stage: 'first_token' }),
    RETRY(1000),
  ],
  ['and no third', after({ kind: 'timeout', stage: 'idle' }, { retriesUsed: 1 }), GIVE_UP],
  [
    'a call that used its whole time is over',
    after({ kind: 'timeout', stage: 'whole_call' }),
    GIVE_UP,
  ],
  ['a refused key is never tried again', after({ kind: 'auth' }), GIVE_UP],
  ['a misspelt model is never tried again', after({ kind: 'unknown_model' }), GIVE_UP],
  ['a refused request is never tried again', after({ kind: 'rejected', status: 400 }), GIVE_UP],
  ['a full context is never tried again', after({ kind: 'context_overflow' }), GIVE_UP],
  [
    'a refused key lets the next model answer',
    after({ kind: 'auth' }, { fallbackLeft: true }),
    FALL_OVER,
  ],
  [
    'nothing is repeated once text was shown',
    after(server, { outputShown: true, fallbackLeft: true }),
    GIVE_UP,
  ],
  ['a stop is a stop', after({ kind: 'cancelled' }, { fallbackLeft: true }), GIVE_UP],
];

test.each(TABLE)('%s', (_sentence, failed, step) => {
  expect(decideRetry(failed, POLICY)).toEqual(step);
});

test('no wait is below the hint, and none without a hint is above the longest', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 3 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.option(fc.integer({ min: 0, max: LONGEST_HINTED_WAIT_MS }), { nil: undefined }),
      (retriesUsed, jitter, hint) => {
        const failure: ProviderFailure =
          hint === undefined ? { kind: 'rate_limited' } : limited(hint);
        const step = decideRetry(after(failure, { retriesUsed, jitter }), POLICY);
        if (step.action !== 'retry') return retriesUsed === 3;
        return step.delayMs >= (hint ?? 0) && step.delayMs <= Math.max(hint ?? 0, POLICY.maxMs);
      },
    ),
  );
});
