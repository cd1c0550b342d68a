// Learns per model how far the estimate of tokens is from what the provider counts.

import { correctedBy } from './rules/tokens.ts';

export interface TokenCorrection {
  /** Multiply an estimate by this. */
  factor(model: string): number;
  observe(model: string, estimated: number, actual: number): void;
}

const MAX_MODELS = 64;

export function createTokenCorrection(): TokenCorrection {
  const factors = new Map<string, number>();
  return {
    factor: (model) => factors.get(model) ?? 1,
    observe(model, estimated, actual) {
      const next = correctedBy(factors.get(model), estimated, actual);
      if (next === undefined) return;
      if (!factors.has(model) && factors.size >= MAX_MODELS) factors.clear();
      factors.set(model, next);
    },
  };
}
