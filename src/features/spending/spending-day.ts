// The ledgers of one day, by person, chat and in total: in memory, and in the store for a restart.
// What a killed process held counts as spent. Also derives the cost of an ended model call, and the
// holder of a budget from its stored names.

import { z } from 'zod';
import type { CallEnd, PlannedCall } from '../../agent/agent.ts';
import type { Person, PersonLimits } from '../../kernel/access/person.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { ProviderFailure } from '../../kernel/message/errors.ts';
import type { CountNames } from '../../kernel/message/message-limits.ts';
import { type CountRow, CountRows } from '../../kernel/message/message-limits.ts';
import type { Persons } from '../../kernel/people/persons.ts';
import { jsonRow, number, rowShape, texts } from '../../lib/json/json.ts';
import { orAborted } from '../../lib/time/clock.ts';
import type { Charged } from './rules/budget-limits.ts';
import { budgetHolder } from './rules/budget-limits.ts';
import {
  type Amount,
  type Ask,
  afterCrash,
  amountOf,
  EMPTY_LEDGER,
  joinedLedgers,
  type Ledger,
  NOTHING,
} from './rules/spending.ts';

/** The scope of the store with these rows. */
export const SPENDING_SCOPE = 'spending';

export type LedgerRow = CountRow<Ledger>;

/** A budget that a call is charged to, with its ledger. */
export type Account = Charged & { readonly row: LedgerRow };

export class SpendingDay {
  readonly day: string;
  /** Epoch milliseconds. */
  readonly endsAt: number;
  readonly ledgers = new CountRows<Ledger>(EMPTY_LEDGER, joinedLedgers);
  /** The own limits of persons as of their last call; by the name of their budget. */
  readonly own = new Map<string, PersonLimits | undefined>();
  /** Models for which the owner got the notice that no budget in money applies. */
  readonly unpriced = new Set<string>();
  readonly #state: KeyValueStore;
  readonly #changed = new Set<LedgerRow>();
  #room = Promise.withResolvers<void>();

  constructor(
    state: KeyValueStore,
    { day, endsAt }: { readonly day: string; readonly endsAt: number },
  ) {
    this.#state = state;
    this.day = day;
    this.endsAt = endsAt;
  }

  /** `onUnread`: called for each damaged row; its counts are lost. */
  async load(onUnread: () => void): Promise<this> {
    for (const { value } of await this.#state.list(prefixOf(this.day))) {
      const row = this.ledgers.read(value);
      if (row === undefined) onUnread();
      else row.value = afterCrash(row.value);
    }
    return this;
  }

  change(row: LedgerRow, value: Ledger): void {
    row.value = value;
    this.#changed.add(row);
  }

  /** Wakes calls that wait for room. */
  announceRoom(): void {
    this.#room.resolve();
    this.#room = Promise.withResolvers();
  }

  /** Resolves when there may be room. @throws the signal's reason */
  room(signal: AbortSignal): Promise<void> {
    return orAborted(this.#room.promise, signal);
  }

  /**
   * Stores all changes in one transaction; what fails stays marked as changed.
   * @throws StoreError
   */
  async store(): Promise<void> {
    const rows = [...this.#changed];
    if (rows.length === 0) return;
    this.#changed.clear();
    const stored = this.ledgers.stored(rows);
    const prefix = prefixOf(this.day);
    try {
      const named = stored.rows.map(({ key, value }) => ({ key: prefix + key, value }));
      await this.#state.setMany(named);
      stored.written();
    } catch (error) {
      for (const row of rows) this.#changed.add(row);
      throw error;
    }
  }
}

const prefixOf = (day: string) => `${day}|`;

export type StoredLedger = {
  readonly key: string;
  readonly names: CountNames;
  readonly ledger: Ledger;
};

const AMOUNT = z.looseObject({ tokens: number, micros: number });
const STORED = rowShape<{ readonly names: CountNames; readonly value: Ledger }>({
  names: texts.min(1),
  value: rowShape<Ledger>({
    ...{ spent: AMOUNT, held: AMOUNT, extraPercent: number, told: number, calls: number },
  }),
});

/** The stored ledgers of one day, by the key of the budget. */
export type StoredDay = {
  readonly day: string;
  readonly rows: readonly StoredLedger[];
};

/**
 * The days from `since` (`YYYY-MM-DD`) on, newest first; what calls in progress hold counts as
 * spent.
 */
export async function storedDays(
  state: KeyValueStore,
  since: string,
): Promise<readonly StoredDay[]> {
  const days = new Map<string, StoredLedger[]>();
  for (const { key, value } of await state.list('')) {
    const [day = '', ...rest] = key.split('|');
    if (day < since) continue;
    const stored = jsonRow(value, STORED);
    if (stored === undefined) continue;
    const row = { key: rest.join('|'), names: stored.names, ledger: afterCrash(stored.value) };
    days.set(day, [...(days.get(day) ?? []), row]);
  }
  return [...days].map(([day, rows]) => ({ day, rows })).toReversed();
}

// The cost of a model call, derived from its end, and the holder of the budget that it is charged
// to.

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

// The holder of a budget: the person's name and own limits, by the names under which the budget is
// stored.

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
