// Counts what an evaluation takes and keeps it below what it may cost, in front of the guard that keeps
// the budgets of the day. All its calls are of the role `eval`, those of a whole agent too.

import type { CallEnd, PlannedCall, SpendingGuard } from '../../agent/spending.ts';
import {
  type Amount,
  amountOf,
  NOTHING,
  plus,
  worstCase,
} from '../../features/spending/rules/spending.ts';
import { type ConfiguredPrice, priceOf } from '../../providers/rules/model-prices.ts';
import type { EvalCost } from './rules/result.ts';

export const EVAL_ROLE = 'eval';

export interface CostCounter {
  readonly guard: SpendingGuard;
  total(): EvalCost;
  /** Whether a call was refused; nothing more can be asked then. */
  readonly refusal: string | undefined;
}

export type CostDeps = {
  readonly inner: SpendingGuard;
  readonly prices: readonly ConfiguredPrice[];
  readonly currency: string;
  /** In millionths; undefined: no limit of its own. */
  readonly maxMicros: number | undefined;
};

type Counted = {
  readonly calls: number;
  readonly unpriced: number;
  readonly input: number;
  readonly output: number;
  readonly spent: Amount;
};

const MICROS = 1_000_000;

export function createCostCounter({ inner, prices, currency, maxMicros }: CostDeps): CostCounter {
  let counted: Counted = { calls: 0, unpriced: 0, input: 0, output: 0, spent: NOTHING };
  let refusal: string | undefined;

  function count(call: PlannedCall, end: CallEnd) {
    const price = priceOf(call.model, prices, currency);
    const usage = end.kind === 'finished' ? end.usage : undefined;
    // A call that failed before anything came is not billed.
    const isFree = end.kind === 'failed' && end.answerTokens === 0;
    const input = isFree ? 0 : (usage?.inputTokens ?? call.inputTokens);
    const output = usage?.outputTokens ?? end.answerTokens;
    const cached = usage?.cachedTokens ?? 0;
    const written = usage?.writtenTokens ?? 0;
    counted = {
      calls: counted.calls + 1,
      unpriced:
        counted.unpriced + (price === undefined || (usage === undefined && !isFree) ? 1 : 0),
      input: counted.input + input,
      output: counted.output + output,
      spent: plus(counted.spent, amountOf(price, { input, output, cached, written })),
    };
  }

  /** Why the call must not be made. */
  function tooDear({ model, inputTokens, outputTokens }: PlannedCall): string | undefined {
    if (maxMicros === undefined) return undefined;
    const price = priceOf(model, prices, currency);
    if (price === undefined) {
      return `${model} has no known price, so a limit in money cannot be kept: set models.prices`;
    }
    const after = plus(
      counted.spent,
      worstCase({ inputTokens, outputTokens, price }, outputTokens),
    );
    if (after.micros <= maxMicros) return undefined;
    const spent = (counted.spent.micros / MICROS).toFixed(4);
    return `the next call could pass the limit of ${maxMicros / MICROS} ${currency}; ${spent} are spent`;
  }

  const guard: SpendingGuard = {
    // The model that was chosen is the one that is measured.
    modelFor: (_payer, model) => model,
    async reserve(planned, signal) {
      const call = { ...planned, role: EVAL_ROLE };
      const dear = tooDear(call);
      const reserved =
        dear === undefined
          ? await inner.reserve(call, signal)
          : ({ kind: 'refused', text: dear } as const);
      if (reserved.kind === 'refused') {
        refusal = reserved.text;
        return reserved;
      }
      let isOpen = true;
      return {
        ...reserved,
        settle(end) {
          reserved.settle(end);
          if (isOpen) count(call, end);
          isOpen = false;
        },
      };
    },
  };

  return {
    guard,
    total: () => ({
      calls: counted.calls,
      inputTokens: counted.input,
      outputTokens: counted.output,
      money: counted.spent.micros / MICROS,
      currency,
      unpriced: counted.unpriced,
    }),
    get refusal() {
      return refusal;
    },
  };
}
