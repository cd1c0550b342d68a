// What a model call took, from how it ended, and whose the budget is that it is charged to.

import type { CallEnd, PlannedCall } from '../../agent/agent.ts';
import type { Person, PersonLimits } from '../../kernel/access/person.ts';
import type { ProviderFailure } from '../../kernel/message/errors.ts';
import type { CountNames } from '../../kernel/message/message-limits.ts';
import type { Persons } from '../../kernel/people/persons.ts';
import { budgetHolder } from './rules/budget-limits.ts';
import { type Amount, type Ask, amountOf, NOTHING } from './rules/spending.ts';

/** Failures by which the vendor shows that it did not begin to answer. */
const UNBILLED: readonly ProviderFailure['kind'][] = [
  'auth',
  'unknown_model',
  'rate_limited',
  'rejected',
  'context_overflow',
  'server',
  'network',
];

export function spentBy(end: CallEnd, call: PlannedCall, ask: Ask): Amount {
  if (end.kind === 'finished' && end.usage !== undefined) {
    const { inputTokens: input, outputTokens: output, cachedTokens: cached } = end.usage;
    const { writtenTokens: written = 0 } = end.usage;
    return amountOf(ask.price, { input, output, cached, written });
  }
  const isUnbilled = end.kind === 'failed' && UNBILLED.includes(end.failure.kind);
  if (isUnbilled && end.answerTokens === 0) return NOTHING;
  return amountOf(ask.price, { input: call.inputTokens, output: end.answerTokens });
}

// Whose a budget is: the person's name and what an owner allows them, by the names it is kept under.

type BudgetOwner = {
  /** Shown, never trusted. */
  readonly name?: string;
  readonly limits?: PersonLimits;
};

/** What a measurement is charged to: no person writes there. */
const EVALUATIONS = 'eval';

export type BudgetOwners = (names: CountNames) => Promise<BudgetOwner>;

export function createBudgetOwners(persons: Pick<Persons, 'of' | 'inChat'>): BudgetOwners {
  async function ownerOf(name: string): Promise<BudgetOwner | undefined> {
    const holder = budgetHolder(name);
    switch (holder.kind) {
      case 'person': {
        const person = await persons.of(holder.channel, [holder.id]);
        return person && { ...named(person), ...(person.limits && { limits: person.limits }) };
      }
      case 'chat': {
        if (holder.chat.channel === EVALUATIONS) return { name: `Evaluation ${holder.chat.chat}` };
        const person = await persons.inChat(holder.chat);
        return person && named(person);
      }
      case 'nobody':
        return undefined;
    }
  }

  return async (names) => {
    for (const name of names) {
      const owner = await ownerOf(name);
      if (owner !== undefined) return owner;
    }
    return {};
  };
}

const named = ({ name }: Person): BudgetOwner => (name === '' ? {} : { name });
