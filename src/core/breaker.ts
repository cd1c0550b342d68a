// Whether a model that failed is asked again: some failures in a row open the breaker for a while, then one
// try is let through, and a success closes it.

export type Breaker = { readonly failures: number; readonly openUntil: number | undefined };
export type BreakerPolicy = { readonly failures: number; readonly cooldownMs: number };

export const CLOSED: Breaker = { failures: 0, openUntil: undefined };

/** `now`: milliseconds of any clock, the same at each call. */
export function afterFailure({ failures }: Breaker, policy: BreakerPolicy, now: number): Breaker {
  const count = failures + 1;
  return {
    failures: count,
    openUntil: count >= policy.failures ? now + policy.cooldownMs : undefined,
  };
}

export const isOpen = ({ openUntil }: Breaker, now: number) =>
  openUntil !== undefined && now < openUntil;
