// What a model call took, from how it ended.

import type { CallEnd, PlannedCall } from '../agent/spending.ts';
import type { ProviderFailure } from '../core/errors.ts';
import { type Amount, type Ask, amountOf, NOTHING } from '../core/spending.ts';

/** Failures by which the vendor shows that it did not begin to answer. */
const UNBILLED: readonly ProviderFailure['kind'][] = [
  'auth',
  'unknown_model',
  'rate_limited',
  'rejected',
  'context_overflow',
  'server',
  'network',
];

export function spentBy(end: CallEnd, call: PlannedCall, ask: Ask): Amount {
  if (end.kind === 'finished' && end.usage !== undefined) {
    const { inputTokens: input, outputTokens: output, cachedTokens: cached } = end.usage;
    const { writtenTokens: written = 0 } = end.usage;
    return amountOf(ask.price, { input, output, cached, written });
  }
  const isUnbilled = end.kind === 'failed' && UNBILLED.includes(end.failure.kind);
  if (isUnbilled && end.answerTokens === 0) return NOTHING;
  return amountOf(ask.price, { input: call.inputTokens, output: end.answerTokens });
}
