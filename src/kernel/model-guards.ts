// The guards of model calls: every try of a call passes them in the order of the composition root. A guard refuses
// the call, holds back what it may cost, or hands it to the next one.

import type { PlannedCall, Refusal, Reservation, SpendingGuard } from '../agent/agent.ts';

export interface ModelGuard {
  readonly name: string;
  /** @throws the signal's reason */
  reserve(
    call: PlannedCall,
    signal: AbortSignal,
    next: SpendingGuard['reserve'],
  ): Promise<Reservation | Refusal>;
  /** Where the guard has a say in which model is asked. */
  readonly modelFor?: SpendingGuard['modelFor'];
}

/** The last guard: holds back what calls cost. */
export const budgetGuard = (budgets: SpendingGuard): ModelGuard => ({
  name: 'budgets',
  reserve: (call, signal) => budgets.reserve(call, signal),
  modelFor: (...asked) => budgets.modelFor(...asked),
});

/** Where no guard holds anything back there is room for every answer. */
const unlimited: SpendingGuard['reserve'] = async ({ outputTokens }) => ({
  ...{ kind: 'reserved', outputTokens },
  settle: () => undefined,
});

/** `read`: from the outside in, called once, before the first call. */
export function guardedModelCalls(read: () => readonly ModelGuard[]): SpendingGuard {
  let known: readonly ModelGuard[] | undefined;
  const guards = () => {
    known ??= read();
    return known;
  };
  return {
    reserve: (call, signal) =>
      guards().reduceRight<SpendingGuard['reserve']>(
        (next, guard) => (each, until) => guard.reserve(each, until, next),
        unlimited,
      )(call, signal),
    modelFor: (payer, model, cheaper) =>
      guards().reduce((named, guard) => guard.modelFor?.(payer, named, cheaper) ?? named, model),
  };
}
