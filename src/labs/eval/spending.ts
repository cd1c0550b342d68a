// The cost of an evaluation: counted and limited before the daily budgets (role `eval`), and
// charged to the budgets of a gateway that runs in the same home.

import type { z } from 'zod';
import type {
  CallEnd,
  PlannedCall,
  Refusal,
  Reservation,
  SpendingGuard,
} from '../../agent/agent.ts';
import { readServerEvents } from '../../channels/terminal/attached.ts';
import { lentAnswer } from '../../features/spending/lending-routes.ts';
import { amountOf, NOTHING, plus, worstCase } from '../../features/spending/rules/spending.ts';
import { tellGateway } from '../../kernel/home-state.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { onAbort } from '../../lib/time/clock.ts';
import { type ConfiguredPrice, priceOf } from '../../providers/rules/model-names.ts';
import type { EvalCost } from './rules/result.ts';

export const EVAL_ROLE = 'eval';

export type CostCounter = ReturnType<typeof createCostCounter>;

type CostDeps = {
  readonly inner: SpendingGuard;
  readonly prices: readonly ConfiguredPrice[];
  readonly currency: string;
  /** In millionths; undefined: no limit of its own. */
  readonly maxMicros: number | undefined;
};

const MICROS = 1_000_000;

export function createCostCounter({ inner, prices, currency, maxMicros }: CostDeps) {
  let total = { calls: 0, inputTokens: 0, outputTokens: 0, unpriced: 0 };
  let money = NOTHING;
  let refusal: string | undefined;

  function count(call: PlannedCall, end: CallEnd) {
    const price = priceOf(call.model, prices, currency);
    const usage = end.kind === 'finished' ? end.usage : undefined;
    // A call that failed before any output is not billed.
    const isFree = end.kind === 'failed' && end.answerTokens === 0;
    const input = isFree ? 0 : (usage?.inputTokens ?? call.inputTokens);
    const output = usage?.outputTokens ?? end.answerTokens;
    const cached = usage?.cachedTokens ?? 0;
    const written = usage?.writtenTokens ?? 0;
    const isUnpriced = price === undefined || (usage === undefined && !isFree);
    total = {
      calls: total.calls + 1,
      inputTokens: total.inputTokens + input,
      outputTokens: total.outputTokens + output,
      unpriced: total.unpriced + (isUnpriced ? 1 : 0),
    };
    money = plus(money, amountOf(price, { input, output, cached, written }));
  }

  /** Why the call is not allowed. */
  function tooDear({ model, inputTokens, outputTokens }: PlannedCall): string | undefined {
    if (maxMicros === undefined) return undefined;
    const price = priceOf(model, prices, currency);
    if (price === undefined) {
      return `the price of ${model} is unknown, so --max-cost cannot be checked; set models.prices`;
    }
    const worst = worstCase({ inputTokens, outputTokens, price }, outputTokens);
    const after = plus(money, worst);
    if (after.micros <= maxMicros) return undefined;
    const spent = (money.micros / MICROS).toFixed(4);
    return `the next call could exceed the limit of ${maxMicros / MICROS} ${currency}; ${spent} spent so far`;
  }

  const guard: SpendingGuard = {
    // The selected model is the one that is measured, so it is never replaced.
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
    total: (): EvalCost => ({ ...total, money: money.micros / MICROS, currency }),
    /** Set once a call was refused; further calls would be refused too. */
    get refusal() {
      return refusal;
    },
  };
}

// Reserves budget at the gateway that runs in this home: each attempt of a call is reserved there
// before it is made. An open connection represents the reservation, so that the end of this process
// releases it.

export type Lender = { readonly address: string; readonly token: string };

const PATH = '/api/model-calls';
const END_TIMEOUT_MS = 5000;
const GONE = 'lost the connection to the gateway, which counts the budgets';

/** Disposing waits until every end was reported. */
export class LentSpending implements SpendingGuard, AsyncDisposable {
  readonly #lender: Lender;
  readonly #ending = new Set<Promise<void>>();

  constructor(lender: Lender) {
    this.#lender = lender;
  }

  modelFor(_payer: PlannedCall['payer'], model: string): string {
    return model;
  }

  async reserve(call: PlannedCall, signal: AbortSignal): Promise<Reservation | Refusal> {
    const connection = new AbortController();
    using _leaving = onAbort(signal, () => connection.abort(signal.reason));
    try {
      const said = await this.#asked(call, connection.signal);
      if (said.kind === 'refused') {
        connection.abort();
        return said;
      }
      return this.#reserved(said, connection);
    } catch {
      signal.throwIfAborted();
      return { kind: 'refused', text: GONE };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ending);
  }

  #reserved(
    { id, outputTokens }: Extract<z.infer<typeof lentAnswer>, { readonly kind: 'reserved' }>,
    connection: AbortController,
  ): Reservation {
    let isOpen = true;
    return {
      kind: 'reserved',
      outputTokens,
      settle: (end) => {
        if (!isOpen) return;
        isOpen = false;
        const told: Promise<void> = this.#tell(id, end)
          // If the report fails, the end of the connection settles the call at its worst case.
          .catch(() => undefined)
          .finally(() => {
            connection.abort();
            this.#ending.delete(told);
          });
        this.#ending.add(told);
      },
    };
  }

  async #asked(call: PlannedCall, signal: AbortSignal) {
    const { payer, turnId: _id, turn: _turn, insteadOf: _failed, ...rest } = call;
    const response = await tellGateway(this.#lender, PATH, { ...rest, chat: payer.chat }, signal);
    if (!response.ok || response.body === null) throw new NanobotError('not_lent', GONE);
    // The stream stays open: it is the reservation.
    const { value } = await readServerEvents(response.body).next();
    return lentAnswer.parse(value);
  }

  async #tell(id: string, { drift: _, ...end }: CallEnd): Promise<void> {
    const response = await tellGateway(
      this.#lender,
      `${PATH}/${id}`,
      end,
      AbortSignal.timeout(END_TIMEOUT_MS),
    );
    await response.arrayBuffer();
  }
}
