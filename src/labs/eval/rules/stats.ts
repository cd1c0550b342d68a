// What the benchmarks compute from what they counted: intervals, windows, transfer, surprise, leads.

export type Interval = { readonly low: number; readonly high: number };

/** 95 % of a normal distribution lie within so many standard deviations. */
const Z_95 = 1.959964;

/** Where the true rate lies with 95 % certainty (Wilson, 1927); of nothing it lies anywhere. */
export function wilson(successes: number, total: number): Interval {
  if (total === 0) return { low: 0, high: 1 };
  const rate = successes / total;
  const spread = Z_95 ** 2 / total;
  const middle = rate + spread / 2;
  const half = Z_95 * Math.sqrt((rate * (1 - rate)) / total + spread / (4 * total));
  const low = (middle - half) / (1 + spread);
  return { low: Math.max(0, low), high: Math.min(1, (middle + half) / (1 + spread)) };
}

export function mean(values: readonly number[]): number | undefined {
  return values.length === 0
    ? undefined
    : values.reduce((sum, one) => sum + one, 0) / values.length;
}

export function median(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((one, other) => one - other);
  const half = Math.floor(sorted.length / 2);
  const upper = sorted[half];
  const lower = sorted[sorted.length % 2 === 0 ? half - 1 : half];
  return upper === undefined || lower === undefined ? undefined : (lower + upper) / 2;
}

/** In seconds, of milliseconds; undefined where there are none. */
export function medianSeconds(milliseconds: readonly number[]): number | undefined {
  const middle = median(milliseconds);
  return middle === undefined ? undefined : middle / 1000;
}

/** Means over `size` neighbours, one for each place such a window can stand. */
export function windows(values: readonly number[], size: number): readonly number[] {
  if (values.length < size) return [];
  return values.slice(size - 1).map((_, at) => mean(values.slice(at, at + size)) ?? 0);
}

/**
 * The rate of the second half over that of the first; undefined where there is no first half to speak
 * of: nothing was asked there, or nothing of it went well.
 */
export function forwardTransfer(successes: readonly boolean[]): number | undefined {
  const half = Math.floor(successes.length / 2);
  const rate = (some: readonly boolean[]) => mean(some.map(Number)) ?? 0;
  const first = rate(successes.slice(0, half));
  return first === 0 ? undefined : rate(successes.slice(half)) / first;
}

/** The share of tasks that took more than twice the mean. */
export function surpriseRate(iterations: readonly number[]): number | undefined {
  const usual = mean(iterations);
  if (usual === undefined) return undefined;
  return mean(iterations.map((taken) => (taken > 2 * usual ? 1 : 0)));
}

/**
 * By how many votes an answer has to lead so that all `steps` are right so often: the worst case, in
 * which all wrong answers are the same (gambler's ruin). Undefined where the voters are wrong more
 * often than right.
 */
export function leadFor(rate: number, steps: number, target: number): number | undefined {
  if (rate >= 1) return 1;
  if (rate <= 0.5 || steps <= 0) return undefined;
  const perStep = target ** (1 / steps);
  const odds = (1 - rate) / rate;
  return Math.max(1, Math.ceil(Math.log((1 - perStep) / perStep) / Math.log(odds) - 1e-9));
}
