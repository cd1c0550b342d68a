// What the model calls of a conversation took, by what their vendors counted.

import { type ConfiguredPrice, priceOf } from './model-prices.ts';
import { type Amount, amountOf, NOTHING, plus } from './spending.ts';
import { supervisedRoles } from './supervised-roles.ts';
import type { TranscriptEntry } from './transcript.ts';

export type ConversationCost = {
  readonly calls: number;
  readonly spent: Amount;
  /** Calls that no vendor counted, or whose model has no known price. */
  readonly unpriced: number;
  /** Of these: what a supervisor and its specialists took, by their roles. */
  readonly shares: readonly RoleShare[];
};

export type RoleShare = {
  readonly role: string;
  readonly calls: number;
  readonly spent: Amount;
};

export function conversationCost(
  entries: readonly TranscriptEntry[],
  prices: readonly ConfiguredPrice[],
  currency: string,
): ConversationCost {
  const roles = supervisedRoles(entries);
  const shares = new Map<string, RoleShare>();
  let cost = { calls: 0, spent: NOTHING, unpriced: 0 };
  for (const entry of entries) {
    if (entry.role !== 'assistant') continue;
    const { usage, model } = entry;
    const price = usage === undefined ? undefined : priceOf(model, prices, currency);
    const {
      inputTokens: input = 0,
      outputTokens: output = 0,
      cachedTokens: cached = 0,
    } = usage ?? {};
    const amount = amountOf(price, { input, output, cached });
    const role = roles.get(entry);
    if (role !== undefined) {
      const { calls, spent } = shares.get(role) ?? { calls: 0, spent: NOTHING };
      shares.set(role, { role, calls: calls + 1, spent: plus(spent, amount) });
    }
    cost = {
      calls: cost.calls + 1,
      spent: plus(cost.spent, amount),
      unpriced: cost.unpriced + (price === undefined ? 1 : 0),
    };
  }
  return { ...cost, shares: [...shares.values()] };
}
