// Sums up the model calls of a conversation by the usage that vendors reported.

import type { TokenUsage, TranscriptEntry } from '../../../kernel/message/transcript.ts';
import { type ConfiguredPrice, priceOf } from '../../../providers/rules/model-names.ts';
import { supervisedRoles } from '../../modes/rules/supervised-turn.ts';
import { type Amount, amountOf, NOTHING, plus } from './spending.ts';

export type ConversationCost = {
  readonly calls: number;
  readonly spent: Amount;
  /** Calls without reported usage, or whose model has no known price. */
  readonly unpriced: number;
  /** The part of models that share the work, by role. */
  readonly shares: readonly RoleShare[];
};

type RoleShare = {
  readonly role: string;
  readonly calls: number;
  readonly spent: Amount;
};

type CountedCall = {
  readonly model: string;
  readonly usage?: TokenUsage | undefined;
  readonly role?: string | undefined;
};

export function conversationCost(
  entries: readonly TranscriptEntry[],
  prices: readonly ConfiguredPrice[],
  currency: string,
): ConversationCost {
  const roles = supervisedRoles(entries);
  const shares = new Map<string, RoleShare>();
  let cost = { calls: 0, spent: NOTHING, unpriced: 0 };
  const called = entries.flatMap((entry): readonly CountedCall[] => {
    if (entry.role === 'turn_end') return entry.shared ?? [];
    if (entry.role !== 'assistant') return [];
    return [{ model: entry.model, usage: entry.usage, role: roles.get(entry) }];
  });
  for (const { model, usage, role } of called) {
    const price = usage === undefined ? undefined : priceOf(model, prices, currency);
    const {
      inputTokens: input = 0,
      outputTokens: output = 0,
      cachedTokens: cached = 0,
    } = usage ?? {};
    const amount = amountOf(price, { input, output, cached });
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
