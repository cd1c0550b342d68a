// What goes wrong at the simulated Telegram, by script. `before`: the request has no effect;
// `after`: it was carried out and only the answer is lost.

export type Fault =
  | {
      readonly kind: 'error';
      readonly code: number;
      readonly description: string;
      readonly parameters?: { readonly retry_after?: number; readonly migrate_to_chat_id?: number };
    }
  /** The request is never answered. */
  | { readonly kind: 'hang'; readonly stage: 'before' | 'after' }
  /** The connection is reset. */
  | { readonly kind: 'drop'; readonly stage: 'before' | 'after' }
  /** A gateway in front of the API answers with a page. */
  | { readonly kind: 'html'; readonly stage: 'before' | 'after'; readonly status: number }
  | { readonly kind: 'not_json'; readonly stage: 'before' | 'after' }
  | { readonly kind: 'slow'; readonly ms: number };

export type Call = {
  readonly method: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Epoch milliseconds. */
  readonly at: number;
};

export type FaultRule = {
  readonly fault: Fault;
  readonly method?: string;
  /** How many matching calls are hit; default 1. */
  readonly times?: number;
  /** Matching calls that pass before the first is hit. */
  readonly skip?: number;
  readonly when?: (call: Call) => boolean;
};

export interface ArmedFault extends Disposable {
  readonly hits: number;
}

export class FaultScript {
  readonly #armed = new Set<{ rule: FaultRule; hits: number; passed: number }>();

  arm(rule: FaultRule): ArmedFault {
    const armed = { rule, hits: 0, passed: 0 };
    this.#armed.add(armed);
    const disarm = () => void this.#armed.delete(armed);
    return {
      get hits() {
        return armed.hits;
      },
      [Symbol.dispose]: disarm,
    };
  }

  next(call: Call): Fault | undefined {
    for (const armed of this.#armed) {
      const { rule } = armed;
      if (rule.method !== undefined && rule.method !== call.method) continue;
      if (rule.when !== undefined && !rule.when(call)) continue;
      if (armed.hits >= (rule.times ?? 1)) continue;
      if (armed.passed < (rule.skip ?? 0)) {
        armed.passed += 1;
        continue;
      }
      armed.hits += 1;
      return rule.fault;
    }
    return undefined;
  }
}
