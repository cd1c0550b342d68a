// A call of an engine that costs money, held back in the budgets before it and settled after it.

import {
  type PaidCall,
  type PaidCalls,
  type PaidReservation,
  SpendingRefusedError,
} from '../agent/spending.ts';
import { isUnbilled } from '../voice/voice.ts';

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
