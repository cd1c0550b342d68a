import { expect, test } from 'vitest';
import { retryHintMs, safeDetail } from '../../src/core/provider-failure.ts';

const NOW = Date.UTC(2026, 0, 15, 12);
const none = { body: '' };

test.each([
  ['seconds', { ...none, retryAfter: '12' }, 12_000],
  ['a fraction of seconds', { ...none, retryAfter: '0.5' }, 500],
  ['a date', { ...none, retryAfter: 'Thu, 15 Jan 2026 12:00:30 GMT' }, 30_000],
  ['a date that has passed', { ...none, retryAfter: 'Thu, 15 Jan 2026 11:00:00 GMT' }, 0],
  ['milliseconds', { ...none, retryAfterMs: '250', retryAfter: '9' }, 250],
  ['words in the body', { body: 'Please try again in 1m2.5s.' }, 62_500],
  ['milliseconds in the body', { body: 'Please try again in 20ms.' }, 20],
  ["Google's RetryInfo", { body: '{"@type":"RetryInfo","retryDelay":"34s"}' }, 34_000],
  ['nonsense', { ...none, retryAfter: 'soon' }, undefined],
  ['nothing', none, undefined],
])('the wait asked for is understood as %s', (_form, hints, expected) => {
  expect(retryHintMs(hints, NOW)).toBe(expected);
});

test.each([
  ['Incorrect API key provided: sk-proj-abcd1234efgh.', 'Incorrect API key provided: [key].'],
  ['bad token Bearer abc.def', 'bad token [key]'],
  ['key gsk_abcdef1234 is invalid', 'key [key] is invalid'],
  ['my-own-secret was refused', '[key] was refused'],
])('keys are taken out of a vendor’s words: %s', (said, shown) => {
  expect(safeDetail(said, ['my-own-secret', ''])).toBe(shown);
});
