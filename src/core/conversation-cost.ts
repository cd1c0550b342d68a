// What the model calls of a conversation took, by what their vendors counted.

import { type ConfiguredPrice, priceOf } from './model-prices.ts';
import { type Amount, amountOf, NOTHING, plus } from './spending.ts';
import type { TranscriptEntry } from './transcript.ts';

export type ConversationCost = {
  readonly calls: number;
  readonly spent: Amount;
  /** Calls that no vendor counted, or whose model has no known price. */
  readonly unpriced: number;
};

export function conversationCost(
  entries: readonly TranscriptEntry[],
  prices: readonly ConfiguredPrice[],
  currency: string,
): ConversationCost {
  let cost: ConversationCost = { calls: 0, spent: NOTHING, unpriced: 0 };
  for (const entry of entries) {
    if (entry.role !== 'assistant') continue;
    const { usage, model } = entry;
    const price = usage === undefined ? undefined : priceOf(model, prices, currency);
    const {
      inputTokens: input = 0,
      outputTokens: output = 0,
      cachedTokens: cached = 0,
    } = usage ?? {};
    cost = {
      calls: cost.calls + 1,
      spent: plus(cost.spent, amountOf(price, { input, output, cached })),
      unpriced: cost.unpriced + (price === undefined ? 1 : 0),
    };
  }
  return cost;
}
