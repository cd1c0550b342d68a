// Watches over what models may cost in a day. The worst case of a call is held before the call is
// made and settled after it; where a budget limits it, what is held is on disk before the model is
// asked. Without budgets it only counts; the counts, a page a day, are stored behind the work.

import type {
  PaidCall,
  PaidCalls,
  PaidReservation,
  PlannedCall,
  Refusal,
  Reservation,
  SpendingGuard,
} from '../../agent/spending.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { LimitsConfig } from '../../kernel/config/limits.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createLocalDays } from '../../lib/time/zone-time.ts';
import { assumedPrice, type ConfiguredPrice, priceOf } from '../../providers/rules/model-names.ts';
import type { Known, KnownAs } from '../people/people.ts';
import type { BudgetNotes } from './budget-notes.ts';
import type { BudgetOwners } from './budget-owners.ts';
import { spentBy } from './paid-call.ts';
import { chargedFor, type Payer, personBudgetNames } from './rules/budget-limits.ts';
import { unpricedRefusal, usedUpText } from './rules/budget-words.ts';
import {
  type Amount,
  type Ask,
  grant,
  isAlmostUsed,
  isLimited,
  isUsedUp,
  NOTHING,
  withHeld,
  withSettled,
  worstCase,
} from './rules/spending.ts';
import { type Account, SpendingDay } from './spending-day.ts';

export type SpendingSettings = {
  readonly limits: LimitsConfig;
  readonly prices: readonly ConfiguredPrice[];
  readonly timeZone: string;
};

export type SpendingDeps = {
  readonly state: KeyValueStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly notes: BudgetNotes;
  readonly knownAs: KnownAs;
  readonly ownerOf: BudgetOwners;
  settings(): SpendingSettings;
};

/** Estimates of the question err; this much more of it is held. */
const INPUT_MARGIN = 1.25;
/** Stands where nothing is to be stored later any more. */
const NO_TIMER: Disposable = { [Symbol.dispose]: () => undefined };
const STORE_AFTER_MS = 1000;
const KEEP_MS = 400 * 86_400_000;

type Held = {
  readonly kind: 'held';
  readonly outputTokens: number;
  settle(spent: Amount): void;
};

export class Spending implements SpendingGuard, Pick<PaidCalls, 'reservePaid'>, AsyncDisposable {
  readonly #deps: SpendingDeps;
  readonly #dayOf = createLocalDays();
  #newest: SpendingDay | undefined;
  #loading: { readonly day: string; readonly page: Promise<SpendingDay> } | undefined;
  #timer: Disposable | undefined;

  constructor(deps: SpendingDeps) {
    this.#deps = deps;
  }

  /** Today's page. @throws StoreError where it cannot be read; the next call tries again */
  async today(): Promise<SpendingDay> {
    const { clock, settings } = this.#deps;
    const { day, endsAt } = this.#dayOf(clock.now(), settings().timeZone);
    if (this.#newest?.day === day) return this.#newest;
    if (this.#loading?.day !== day) this.#loading = { day, page: this.#open(day, endsAt) };
    const { page } = this.#loading;
    try {
      const opened = await page;
      if (this.#loading.page === page) this.#newest = opened;
      return opened;
    } catch (error) {
      this.#loading = undefined;
      throw error;
    }
  }

  modelFor(payer: Payer, model: string, cheaper: (model: string) => string): string {
    const day = this.#newest;
    if (day === undefined || this.#deps.clock.now() >= day.endsAt) return model;
    const limited = this.#accounts(day, payer).filter(({ cap }) => isLimited(cap));
    const almost = limited.find(({ row, cap }) => isAlmostUsed({ ledger: row.value, cap }));
    // Where a budget is used up the call is refused, and no other model is to be announced.
    const isRefused = limited.some(({ row, cap }) => isUsedUp({ ledger: row.value, cap }));
    if (almost === undefined || isRefused) return model;
    const other = cheaper(model);
    if (other !== model) this.#deps.notes.cheaper(day, almost, payer, other);
    return other;
  }

  async reserve(call: PlannedCall, signal: AbortSignal): Promise<Reservation | Refusal> {
    const ask = await this.#askOf(call);
    if (ask === undefined) return { kind: 'refused', text: unpricedRefusal(call.model) };
    const claimed = await this.#claim(call.payer, ask, signal);
    if (claimed.kind === 'refused') return claimed;
    const { outputTokens, settle } = claimed;
    return { kind: 'reserved', outputTokens, settle: (end) => settle(spentBy(end, call, ask)) };
  }

  async reservePaid(
    { payer, micros }: PaidCall,
    signal: AbortSignal,
  ): Promise<PaidReservation | Refusal> {
    // One token, so that a budget in tokens that is used up lets nothing through either.
    const ask: Ask = { inputTokens: 1, outputTokens: 0, price: undefined, flatMicros: micros };
    const claimed = await this.#claim(payer, ask, signal);
    if (claimed.kind === 'refused') return claimed;
    return { kind: 'reserved', settle: (took) => claimed.settle({ tokens: 0, micros: took }) };
  }

  /** Waits for calls under way where there is room only after them. @throws the signal's reason */
  async #claim(payer: Payer, ask: Ask, signal: AbortSignal): Promise<Held | Refusal> {
    for (;;) {
      const { day, accounts } = await this.#charged(payer);
      const budgets = accounts.map(({ row, cap }) => ({ ledger: row.value, cap }));
      const granted = grant(budgets, ask);
      if (granted.kind === 'wait') {
        await day.room(signal);
        continue;
      }
      if (granted.kind === 'granted') return this.#hold(day, payer, ask, granted.outputTokens);
      const account = accounts[granted.by];
      if (account !== undefined) return this.#refuse(day, account);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer?.[Symbol.dispose]();
    this.#timer = NO_TIMER;
    await this.#newest?.store();
  }

  async #open(day: string, endsAt: number): Promise<SpendingDay> {
    const { state, clock, log } = this.#deps;
    if (this.#newest !== undefined) this.#storeNow(this.#newest);
    state
      .expire('', clock.now() - KEEP_MS)
      .catch((error) => log.warn('old spending not deleted', { error }));
    const onUnread = () => log.error('spending not readable', { day });
    return new SpendingDay(state, { day, endsAt }).load(onUnread);
  }

  /** A page that was changed: within a second where it is the newest, an older one now. */
  #storeSoon(page: SpendingDay): void {
    if (page !== this.#newest) this.#storeNow(page);
    this.#timer ??= this.#deps.clock.timer(STORE_AFTER_MS, () => {
      this.#timer = undefined;
      if (this.#newest !== undefined) this.#storeNow(this.#newest);
    });
  }

  #storeNow(page: SpendingDay): void {
    const { log } = this.#deps;
    page.store().catch((error) => log.warn('spending not stored', { error }));
  }

  async #learnLimits(day: SpendingDay, payer: Payer): Promise<void> {
    const { ownerOf } = this.#deps;
    const [person] = this.#accounts(day, payer).filter(({ whose }) => whose === 'person');
    if (person !== undefined) day.own.set(person.names[0], (await ownerOf(person.names)).limits);
  }

  #accounts(day: SpendingDay, payer: Payer): readonly Account[] {
    const { limits } = this.#deps.settings();
    const charged = chargedFor(payer, limits, (name) => day.own.get(name));
    return charged.map((one) => ({ ...one, row: day.book.at(one.names) }));
  }

  async #charged(payer: Payer) {
    const known = await this.#deps.knownAs(payer);
    const day = await this.today();
    joinDoors(day, payer, known);
    await this.#learnLimits(day, payer);
    return { day, accounts: this.#accounts(day, payer) };
  }

  /** Undefined where it must not be made: nobody knows what it would cost. */
  async #askOf(planned: PlannedCall): Promise<Ask | undefined> {
    const { payer, model, inputTokens, outputTokens, countsMoney = false } = planned;
    const { prices, limits } = this.#deps.settings();
    const { currency, unpriced } = limits.budget;
    const ask = { inputTokens: Math.ceil(inputTokens * INPUT_MARGIN), outputTokens };
    const price = priceOf(model, prices, currency);
    if (price !== undefined) return { ...ask, price };
    const { day, accounts } = await this.#charged(payer);
    if (!countsMoney && !accounts.some(({ cap }) => cap.micros > 0)) return { ...ask, price };
    const assumed = assumedPrice(unpriced, currency);
    this.#deps.notes.unpriced(day, model, assumed);
    return assumed === undefined ? undefined : { ...ask, price: assumed };
  }

  #refuse(day: SpendingDay, account: Account): Refusal {
    const { clock, log, notes, settings } = this.#deps;
    log.info('model call refused: the budget is used up', { budget: account.row.key });
    notes.usedUp(day, account);
    const { currency } = settings().limits.budget;
    const view = { key: account.row.key, ledger: account.row.value, cap: account.cap };
    return { kind: 'refused', text: usedUpText(view, currency, day.endsAt - clock.now()) };
  }

  /** @throws StoreError where what is held could not be stored: the call must not be made then. */
  async #hold(day: SpendingDay, payer: Payer, ask: Ask, outputTokens: number): Promise<Held> {
    const held = worstCase(ask, outputTokens);
    const accounts = this.#accounts(day, payer);
    for (const { row } of accounts) day.change(row, withHeld(row.value, held));
    let isOpen = true;
    const settle = (spent: Amount) => {
      if (!isOpen) return;
      isOpen = false;
      this.#settle(day, payer, held, spent);
    };
    try {
      if (accounts.some(({ cap }) => isLimited(cap))) await day.store();
    } catch (error) {
      settle(NOTHING);
      throw error;
    }
    return { kind: 'held', outputTokens, settle };
  }

  #settle(day: SpendingDay, payer: Payer, held: Amount, spent: Amount): void {
    // Looked up again: two names may have turned out to be one person meanwhile.
    for (const account of this.#accounts(day, payer)) {
      const { row } = account;
      day.change(row, withSettled(row.value, held, spent));
      this.#deps.notes.spent(day, account, payer);
    }
    day.announceRoom();
    this.#storeSoon(day);
  }
}

/** Whoever is met on another door than before is one with who they are there. */
function joinDoors(day: SpendingDay, payer: Payer, { names }: Known): void {
  if (names.length > 0) day.book.at(personBudgetNames(payer, names));
}
