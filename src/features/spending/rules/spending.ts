// The rules of daily budgets. The worst case of a call is held before the call, so that concurrent
// calls never exceed the limit together. Other files decide who pays and what is stored.

/** Money in millionths of the currency: a price per million tokens times tokens. */
export type Amount = { readonly tokens: number; readonly micros: number };

/** The daily limit; 0: no limit of that kind. */
export type Cap = Amount;

/** The highest percentage that was reported for a budget. */
export type Told = 0 | 80 | 95 | 100;

export type Ledger = {
  readonly spent: Amount;
  /** The worst case of calls in progress. */
  readonly held: Amount;
  /** Its parts, by the process that makes the calls; absent where there is only one process. */
  readonly holds?: Readonly<Record<string, Amount>>;
  /** Added to the limit for this day by an owner. */
  readonly extraPercent: number;
  readonly told: Told;
  readonly calls: number;
};

/** Money per million tokens. */
export type Price = {
  readonly input: number;
  readonly output: number;
  /** For input that the vendor had in its cache. */
  readonly cached: number;
  /** For input that the vendor writes to its cache; default: the price of input. */
  readonly written?: number | undefined;
};

export type Ask = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Undefined where unknown: such calls count in tokens only. */
  readonly price: Price | undefined;
  /** Cost beside the tokens, in millionths. */
  readonly flatMicros?: number;
};

export type Grant =
  /** The answer may have to be shorter than requested. */
  | { readonly kind: 'granted'; readonly outputTokens: number }
  /** It fits once calls in progress have ended. */
  | { readonly kind: 'wait' }
  /** `by`: index of the exhausted budget. */
  | { readonly kind: 'refused'; readonly by: number };

export const NOTHING: Amount = { tokens: 0, micros: 0 };
export const EMPTY_LEDGER: Ledger = {
  spent: NOTHING,
  held: NOTHING,
  extraPercent: 0,
  told: 0,
  calls: 0,
};

/** A shorter answer is useless. */
const MIN_ANSWER_TOKENS = 256;
const NOTE_SHARE = 0.8;
const CHEAPER_SHARE = 0.95;

export const plus = (left: Amount, right: Amount): Amount => ({
  tokens: left.tokens + right.tokens,
  micros: left.micros + right.micros,
});

const minus = (left: Amount, right: Amount): Amount => ({
  tokens: Math.max(0, left.tokens - right.tokens),
  micros: Math.max(0, left.micros - right.micros),
});

export const isLimited = ({ tokens, micros }: Cap) => tokens > 0 || micros > 0;

export function capFor(cap: Cap, { extraPercent }: Pick<Ledger, 'extraPercent'>): Cap {
  const more = (limit: number) => Math.floor((limit * (100 + extraPercent)) / 100);
  return { tokens: more(cap.tokens), micros: more(cap.micros) };
}

/** The cost of a call; money is rounded up. */
export function amountOf(
  price: Price | undefined,
  usage: {
    readonly input: number;
    readonly output: number;
    readonly cached?: number;
    readonly written?: number;
  },
): Amount {
  const { input, output, cached = 0, written = 0 } = usage;
  const tokens = input + output;
  if (price === undefined) return { tokens, micros: 0 };
  const fresh = Math.max(0, input - cached - written);
  const kept = cached * price.cached + written * (price.written ?? price.input);
  const micros = fresh * price.input + kept + output * price.output;
  return { tokens, micros: Math.ceil(micros) };
}

export type Budget = { readonly ledger: Ledger; readonly cap: Cap };

/** Whether a call may be made now, and how long its answer may be. */
export function grant(budgets: readonly Budget[], ask: Ask): Grant {
  const rooms = budgets.map(({ ledger, cap: daily }) => {
    const cap = capFor(daily, ledger);
    const left = outputRoom(cap, ledger.spent, ask);
    return { left, now: outputRoom(cap, plus(ledger.spent, ledger.held), ask) };
  });
  const left = Math.min(ask.outputTokens, ...rooms.map((room) => room.left));
  if (left < Math.min(MIN_ANSWER_TOKENS, ask.outputTokens)) {
    return { kind: 'refused', by: rooms.findIndex((room) => room.left === left) };
  }
  if (rooms.some((room) => room.now < left)) return { kind: 'wait' };
  return { kind: 'granted', outputTokens: left };
}

/** Output tokens that fit beside what is used already; negative: not even the input fits. */
function outputRoom(cap: Cap, used: Amount, { inputTokens, price, flatMicros = 0 }: Ask): number {
  const byTokens =
    cap.tokens === 0 ? Number.POSITIVE_INFINITY : cap.tokens - used.tokens - inputTokens;
  if (cap.micros === 0) return byTokens;
  const left = cap.micros - used.micros - flatMicros;
  if (price === undefined || isFree(price)) {
    return flatMicros > 0 && left < 0 ? left : byTokens;
  }
  const money = left - Math.ceil(inputTokens * dearest(price));
  if (price.output === 0) return money < 0 ? money : byTokens;
  return Math.min(byTokens, Math.floor(money / price.output));
}

/** The worst case of a call: nothing is read from a cache, all of it is written to one. */
export function worstCase(
  { inputTokens, price, flatMicros = 0 }: Ask,
  outputTokens: number,
): Amount {
  const tokens = inputTokens + outputTokens;
  if (price === undefined) return { tokens, micros: flatMicros };
  const micros = Math.ceil(inputTokens * dearest(price)) + Math.ceil(outputTokens * price.output);
  return { tokens, micros: micros + flatMicros };
}

const isFree = ({ input, output }: Price) => input === 0 && output === 0;

const dearest = ({ input, cached, written = 0 }: Price) => Math.max(input, cached, written);

export function withHeld(ledger: Ledger, amount: Amount): Ledger {
  return { ...ledger, held: plus(ledger.held, amount) };
}

/** Ends a call: releases what was held for it and adds what it used. */
export function withSettled(ledger: Ledger, held: Amount, spent: Amount): Ledger {
  return {
    ...ledger,
    held: minus(ledger.held, held),
    spent: plus(ledger.spent, spent),
    calls: ledger.calls + 1,
  };
}

/** What a killed process held may have been spent, so it counts as spent. */
export function afterCrash({ holds: _holds, ...ledger }: Ledger): Ledger {
  return { ...ledger, held: NOTHING, spent: plus(ledger.spent, ledger.held) };
}

/** The same of several processes: of those that are gone. */
export function afterDeaths(ledger: Ledger, isLive: (owner: string) => boolean): Ledger {
  const { holds = {}, ...rest } = ledger;
  const gone = Object.entries(holds).filter(([owner]) => !isLive(owner));
  if (gone.length === 0) return ledger;
  const lost = gone.map(([, amount]) => amount).reduce(plus);
  const left = Object.entries(holds).filter(([owner]) => isLive(owner));
  const held = minus(rest.held, lost);
  return { ...rest, held, holds: Object.fromEntries(left), spent: plus(rest.spent, lost) };
}

export function withHeldBy(owner: string, { holds, ...ledger }: Ledger, amount: Amount): Ledger {
  const own = plus(holds?.[owner] ?? NOTHING, amount);
  return { ...withHeld(ledger, amount), holds: { ...holds, [owner]: own } };
}

/** Where the process was taken for dead meanwhile, what it held has been counted as spent. */
export function withSettledBy(
  owner: string,
  { holds = {}, ...ledger }: Ledger,
  held: Amount,
  spent: Amount,
): Ledger {
  const { [owner]: own = NOTHING, ...others } = holds;
  const released = {
    tokens: Math.min(own.tokens, held.tokens),
    micros: Math.min(own.micros, held.micros),
  };
  const left = minus(own, released);
  const isOver = left.tokens === 0 && left.micros === 0;
  const settled = withSettled(ledger, released, spent);
  return {
    ...settled,
    spent: minus(settled.spent, minus(held, released)),
    holds: isOver ? others : { ...others, [owner]: left },
  };
}

/** Merges two ledgers that belong to one person. */
export function joinedLedgers(left: Ledger, right: Ledger): Ledger {
  const owners = Object.keys({ ...left.holds, ...right.holds });
  const holdOf = (owner: string) =>
    plus(left.holds?.[owner] ?? NOTHING, right.holds?.[owner] ?? NOTHING);
  return {
    spent: plus(left.spent, right.spent),
    held: plus(left.held, right.held),
    ...(owners.length > 0
      ? { holds: Object.fromEntries(owners.map((owner) => [owner, holdOf(owner)])) }
      : {}),
    extraPercent: Math.max(left.extraPercent, right.extraPercent),
    told: left.told > right.told ? left.told : right.told,
    calls: left.calls + right.calls,
  };
}

/** The larger of the used shares of tokens and of money; 0 without a limit. */
export function shareUsed({ ledger, cap: daily }: Budget): number {
  const cap = capFor(daily, ledger);
  const share = (used: number, limit: number) => (limit === 0 ? 0 : used / limit);
  return Math.max(share(ledger.spent.tokens, cap.tokens), share(ledger.spent.micros, cap.micros));
}

export const isNearlyUsed = (budget: Budget) => shareUsed(budget) >= NOTE_SHARE;
/** From here on the cheaper model answers. */
export const isAlmostUsed = (budget: Budget) => shareUsed(budget) >= CHEAPER_SHARE;
export const isUsedUp = (budget: Budget) => shareUsed(budget) >= 1;
