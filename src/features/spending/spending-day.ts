// The ledgers of one day, by person, chat and in total: in memory, and in the store for a restart.
// What a killed process held counts as spent. Also derives the cost of an ended model call, and the
// holder of a budget from its stored names.

import { z } from 'zod';
import type { CallEnd, PlannedCall } from '../../agent/agent.ts';
import type { Person, PersonLimits } from '../../kernel/access/person.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { CountNames } from '../../kernel/message/message-limits.ts';
import { type CountRow, CountRows, leadOf, namesOf } from '../../kernel/message/message-limits.ts';
import type { Persons } from '../../kernel/people/persons.ts';
import { jsonRow, number, rowShape, texts } from '../../lib/json/json.ts';
import { orAborted } from '../../lib/time/clock.ts';
import { estimatedUsage } from '../../providers/rules/provider-failure.ts';
import type { Charged } from './rules/budget-limits.ts';
import { budgetHolder } from './rules/budget-limits.ts';
import {
  type Amount,
  type Ask,
  afterCrash,
  afterDeaths,
  amountOf,
  EMPTY_LEDGER,
  joinedLedgers,
  type Ledger,
} from './rules/spending.ts';

/** The scope of the store with these rows. */
export const SPENDING_SCOPE = 'spending';

export type LedgerRow = CountRow<Ledger>;

/** A budget that a call is charged to, with its ledger. */
export type Account = Charged & { readonly row: LedgerRow };

/** Of several processes that keep the ledgers together. */
export type Sharing = {
  /** This process. */
  readonly owner: string;
  isLive(owner: string): boolean;
  /** Changes once another process has changed a ledger. */
  revision(): number;
};

type Step = (ledger: Ledger) => Ledger;
type Ledgers = CountRows<Ledger>;

export class SpendingDay {
  readonly day: string;
  /** Epoch milliseconds. */
  readonly endsAt: number;
  readonly ledgers: Ledgers = new CountRows(EMPTY_LEDGER, joinedLedgers);
  /** The own limits of persons as of their last call; by the name of their budget. */
  readonly own = new Map<string, PersonLimits | undefined>();
  /** Models for which the owner got the notice that no budget in money applies. */
  readonly unpriced = new Set<string>();
  readonly #state: KeyValueStore;
  readonly #sharing: Sharing | undefined;
  /** What is not stored yet. */
  #changed = new Map<LedgerRow, Step[]>();
  #room = Promise.withResolvers<void>();
  #revision = 0;

  constructor(
    state: KeyValueStore,
    { day, endsAt }: { readonly day: string; readonly endsAt: number },
    sharing?: Sharing,
  ) {
    this.#state = state;
    this.#sharing = sharing;
    this.day = day;
    this.endsAt = endsAt;
  }

  /** `onUnread`: called for each damaged row; its counts are lost. */
  async load(onUnread: () => void): Promise<this> {
    this.#revision = this.#sharing?.revision() ?? 0;
    for (const { value } of await this.#state.list(prefixOf(this.day))) {
      if (leadOf(value) !== undefined) continue;
      if (this.#sharing !== undefined) {
        const row = new CountRows(EMPTY_LEDGER, joinedLedgers).read(value);
        if (row === undefined) onUnread();
        else this.#learn(row);
        continue;
      }
      const row = this.ledgers.read(value);
      if (row === undefined) onUnread();
      else row.value = afterCrash(row.value);
    }
    return this;
  }

  /** With what other processes have changed. @throws StoreError */
  async refreshed(onUnread: () => void): Promise<this> {
    const isCurrent = (this.#sharing?.revision() ?? 0) === this.#revision;
    return isCurrent ? this : this.load(onUnread);
  }

  /** Of several processes: `step` runs again on what is stored. */
  change(row: LedgerRow, step: Step): void {
    row.value = step(row.value);
    const steps = this.#changed.get(row) ?? [];
    if (this.#sharing !== undefined) steps.push(step);
    this.#changed.set(row, steps);
  }

  /**
   * Of several processes: judges these ledgers by what all of them have stored, and changes them,
   * in one transaction. `step` may run again. @throws StoreError
   */
  async together<T>(
    rows: readonly LedgerRow[],
    step: (ledgers: readonly LedgerRow[]) => T,
  ): Promise<T> {
    const { changeCounts } = await import('../../kernel/intake/shared-counts.ts');
    const changed = this.#changed;
    this.#changed = new Map();
    const { isLive = () => true } = this.#sharing ?? {};
    const meant = [...new Set([...changed.keys(), ...rows])];
    const counts = { state: this.#state, prefix: prefixOf(this.day), ...LEDGERS };
    try {
      const [stored, result] = await changeCounts(counts, meant.map(namesOf), (ledgers) => {
        for (const row of ledgers.rows) row.value = afterDeaths(row.value, isLive);
        for (const [row, steps] of changed) apply(ledgers.at(namesOf(row)), steps);
        const judged = step(rows.map((row) => ledgers.at(namesOf(row))));
        return [ledgers.rows, judged] as const;
      });
      for (const row of stored) this.#learn(row);
      return result;
    } catch (error) {
      for (const [row, steps] of this.#changed) {
        changed.set(row, [...(changed.get(row) ?? []), ...steps]);
      }
      this.#changed = changed;
      throw error;
    }
  }

  /** Takes over what is stored, with what is not stored yet. */
  #learn({ names, value }: LedgerRow): void {
    const [first = '', ...others] = names;
    const row = this.ledgers.at([first, ...others]);
    row.value = value;
    apply(row, this.#changed.get(row) ?? []);
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
    if (this.#sharing !== undefined) return this.together([], () => undefined);
    this.#changed.clear();
    const stored = this.ledgers.stored(rows.map(([row]) => row));
    const prefix = prefixOf(this.day);
    try {
      const named = stored.rows.map(({ key, value }) => ({ key: prefix + key, value }));
      await this.#state.setMany(named);
      stored.written();
    } catch (error) {
      for (const [row, steps] of rows) this.#changed.set(row, steps);
      throw error;
    }
  }
}

const LEDGERS = { fresh: EMPTY_LEDGER, join: joinedLedgers };

const prefixOf = (day: string) => `${day}|`;

function apply(row: LedgerRow, steps: readonly Step[]): void {
  for (const step of steps) row.value = step(row.value);
}

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

export function spentBy(end: CallEnd, call: PlannedCall, ask: Ask): Amount {
  if (end.kind === 'finished' && end.usage !== undefined) {
    const { inputTokens: input, outputTokens: output, cachedTokens: cached } = end.usage;
    const { writtenTokens: written = 0 } = end.usage;
    return amountOf(ask.price, { input, output, cached, written });
  }
  return amountOf(ask.price, estimatedUsage(call.inputTokens, end));
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
