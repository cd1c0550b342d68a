// Waiting times between tries: doubling, with jitter, capped.

export type BackoffOptions = {
  readonly minMs: number;
  readonly maxMs: number;
  /** 0 to 1; random so that many clients do not return at the same instant. */
  readonly random: () => number;
};

/** The wait before try `failures + 1`: between half and all of min · 2^(failures-1), at most max. */
export function backoffMs(failures: number, options: BackoffOptions): number {
  const ceiling = Math.min(options.maxMs, options.minMs * 2 ** Math.max(0, failures - 1));
  return Math.round(ceiling / 2 + (ceiling / 2) * options.random());
}
