// Whose a budget is: the person's name and what an owner allows them, by the names it is kept under.

import type { Person, PersonLimits } from '../../kernel/access/person.ts';
import type { CountNames } from '../../kernel/message/message-limits.ts';
import type { Persons } from '../people/persons.ts';
import { budgetHolder } from './rules/budget-limits.ts';

export type BudgetOwner = {
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
