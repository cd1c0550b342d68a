// A call of an engine that costs money, held back in the budgets before it and settled after it.

import {
  type CallEnd,
  type PaidCall,
  type PaidCalls,
  type PaidReservation,
  type PlannedCall,
  SpendingRefusedError,
} from '../../agent/spending.ts';
import type { ProviderFailure } from '../../kernel/message/errors.ts';
import { isUnbilled } from '../voice/voice.ts';
import { type Amount, type Ask, amountOf, NOTHING } from './rules/spending.ts';

export type CostlyCall<Result> = PaidCall & {
  /** Leaves one's own machines. */
  readonly isElsewhere: boolean;
  /** What it took, in millionths. */
  costOf(result: Result): number;
};

/** What costs nothing asks no budget. @throws SpendingRefusedError, what the call throws */
export async function charged<Result>(
  { payer, micros, isElsewhere, costOf }: CostlyCall<Result>,
  call: () => Promise<Result>,
  { spending, signal }: { readonly spending: PaidCalls; readonly signal: AbortSignal },
): Promise<Result> {
  const kept = isElsewhere ? await spending.refusedElsewhere(payer) : undefined;
  if (kept !== undefined) throw new SpendingRefusedError(kept);
  if (micros === 0) return call();
  const reserved = await spending.reservePaid({ payer, micros }, signal);
  if (reserved.kind === 'refused') throw new SpendingRefusedError(reserved);
  return settled(reserved, call, micros, costOf);
}

async function settled<Result>(
  { settle }: PaidReservation,
  call: () => Promise<Result>,
  micros: number,
  costOf: (result: Result) => number,
): Promise<Result> {
  try {
    const result = await call();
    settle(costOf(result));
    return result;
  } catch (error) {
    settle(isUnbilled(error) ? 0 : micros);
    throw error;
  }
}

// What a model call took, from how it ended.

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
