import { expect, test } from 'vitest';
import {
  classifyFailure,
  retryHintMs,
  safeDetail,
} from '../../src/providers/rules/provider-failure.ts';

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

test.each([
  ['request (9000 tokens) exceeds the available context size (4096 tokens), try it larger', 4096],
  ['Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)', 7424],
  ['{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}', 4096],
  ['The model’s maximum context length is 32,768 tokens. However, you requested 40000', 32_768],
  ['The decoder prompt (length 5000) is longer than the maximum model length of 4096.', 4096],
  ['Trying to keep the first 9000 tokens; it is loaded with context length of only 8192', 8192],
  ['Number of tokens (768) exceeded maximum context length (512)', 512],
  ['Context size has been exceeded.', undefined],
  ['the maximum context length is 12 tokens', undefined],
  ['the maximum context length is 99999999999 tokens', undefined],
  ['the input length exceeds the context length: 9000 tokens', undefined],
])('the window is read from what a server says of a question too long: %s', (message, tokens) => {
  const failure = classifyFailure({ source: 'response', status: 400, message });
  expect(failure).toEqual({
    kind: 'context_overflow',
    ...(tokens === undefined ? {} : { contextTokens: tokens }),
  });
});
