// What a model call costs by the configured prices, in millionths of the currency.

import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { TokenUsage } from '../../kernel/message/transcript.ts';
import { assumedPrice, priceOf } from '../../providers/rules/model-names.ts';
import { amountOf, type Price } from './rules/spending.ts';

/** Undefined where the price is not known. */
export function knownCost({ config }: LiveConfig, model: string, usage: TokenUsage) {
  const price = priceOf(model, config.models.prices, config.limits.budget.currency);
  return price === undefined ? undefined : microsOf(price, usage);
}

/** A model of unknown price costs what the spending guard charges for it. */
export function chargedCost(live: LiveConfig, model: string, usage: TokenUsage) {
  const { unpriced, currency } = live.config.limits.budget;
  const known = knownCost(live, model, usage);
  const price = known === undefined ? assumedPrice(unpriced, currency) : undefined;
  return price === undefined ? known : microsOf(price, usage);
}

function microsOf(price: Price, usage: TokenUsage): number {
  const { inputTokens: input, outputTokens: output, cachedTokens: cached, writtenTokens } = usage;
  const written = writtenTokens === undefined ? {} : { written: writtenTokens };
  return amountOf(price, { input, output, cached, ...written }).micros;
}
