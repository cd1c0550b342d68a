// Enforces daily budgets. The worst case of a call is held before the call and settled after it;
// where a budget applies, the hold is on the disk before the model is called. Without budgets it
// only counts; the counts of each day are stored in the background.

import type {
  PaidCall,
  PaidCalls,
  PaidReservation,
  PlannedCall,
  Refusal,
  Reservation,
  SpendingGuard,
} from '../../agent/agent.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { LimitsConfig } from '../../kernel/config/limits.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { Payer } from '../../kernel/message/message.ts';
import type { Known, KnownAs } from '../../kernel/people/persons.ts';
import { sleepOrWoken } from '../../lib/time/clock.ts';
import { createLocalDays } from '../../lib/time/zone-time.ts';
import { assumedPrice, type ConfiguredPrice, priceOf } from '../../providers/rules/model-names.ts';
import type { BudgetNotes } from './budget-notes.ts';
import {
  chargedFor,
  personBudgetNames,
  unpricedRefusal,
  usedUpText,
} from './rules/budget-limits.ts';
import {
  type Amount,
  type Ask,
  type Grant,
  grant,
  isAlmostUsed,
  isLimited,
  isUsedUp,
  type Ledger,
  NOTHING,
  withHeld,
  withHeldBy,
  withSettled,
  withSettledBy,
  worstCase,
} from './rules/spending.ts';
import type { BudgetOwners } from './spending-day.ts';
import {
  type Account,
  type LedgerRow,
  type Sharing,
  SpendingDay,
  spentBy,
} from './spending-day.ts';

export type SpendingSettings = {
  readonly limits: LimitsConfig;
  readonly prices: readonly ConfiguredPrice[];
  readonly timeZone: string;
};

type SpendingDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly state: KeyValueStore;
  readonly notes: BudgetNotes;
  readonly knownAs: KnownAs;
  readonly ownerOf: BudgetOwners;
  settings(): SpendingSettings;
  /** Absent: this process is the only one. */
  readonly sharing?: Sharing | undefined;
};

/** Factor on the estimated input, because estimates err. */
const INPUT_MARGIN = 1.25;
/** Used where nothing is to be stored later any more. */
const NO_TIMER: Disposable = { [Symbol.dispose]: () => undefined };
const STORE_AFTER_MS = 1000;
/** Between two looks whether other processes have made room. */
const LOOK_MS = 1000;
const KEEP_MS = 400 * 86_400_000;

type Held = {
  readonly kind: 'held';
  readonly outputTokens: number;
  settle(spent: Amount): void;
};

/** Who pays at this moment. */
type Charged = { readonly day: SpendingDay; readonly accounts: readonly Account[] };

export class Spending implements SpendingGuard, Pick<PaidCalls, 'reservePaid'>, AsyncDisposable {
  readonly #deps: SpendingDeps;
  readonly #dayOf = createLocalDays();
  #newest: SpendingDay | undefined;
  #loading: { readonly day: string; readonly page: Promise<SpendingDay> } | undefined;
  #timer: Disposable | undefined;

  constructor(deps: SpendingDeps) {
    this.#deps = deps;
  }

  /** Today's ledgers. @throws StoreError where they cannot be read; the next call tries again */
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

  /** The same, with what other processes have changed. @throws StoreError */
  async shown(): Promise<SpendingDay> {
    const day = await this.today();
    return day.refreshed(() => this.#unread(day.day));
  }

  modelFor(payer: Payer, model: string, cheaper: (model: string) => string): string {
    const day = this.#newest;
    if (day === undefined || this.#deps.clock.now() >= day.endsAt) return model;
    const limited = this.#accounts(day, payer).filter(({ cap }) => isLimited(cap));
    const almost = limited.find(({ row, cap }) => isAlmostUsed({ ledger: row.value, cap }));
    // Where a budget is used up the call is refused, so no change of model is announced.
    const isRefused = limited.some(({ row, cap }) => isUsedUp({ ledger: row.value, cap }));
    if (almost === undefined || isRefused) return model;
    const other = cheaper(model);
    if (other !== model) this.#deps.notes.cheaper(day, almost, payer, other);
    return other;
  }

  async reserve(call: PlannedCall, signal: AbortSignal): Promise<Reservation | Refusal> {
    const charged = await this.#charged(call.payer);
    const ask = this.#askOf(call, charged);
    if (ask === undefined) return { kind: 'refused', text: unpricedRefusal(call.model) };
    const waits = call.settled !== undefined && !coversTwice(charged.accounts, ask);
    if (waits) await call.settled?.(signal);
    const claimed = await this.#claim(call.payer, ask, signal, waits ? undefined : charged);
    if (claimed.kind === 'refused') return claimed;
    const { outputTokens, settle } = claimed;
    return { kind: 'reserved', outputTokens, settle: (end) => settle(spentBy(end, call, ask)) };
  }

  async reservePaid(
    { payer, micros }: PaidCall,
    signal: AbortSignal,
  ): Promise<PaidReservation | Refusal> {
    // One token, so that an exhausted token budget refuses it too.
    const ask: Ask = { inputTokens: 1, outputTokens: 0, price: undefined, flatMicros: micros };
    const claimed = await this.#claim(payer, ask, signal);
    if (claimed.kind === 'refused') return claimed;
    return { kind: 'reserved', settle: (took) => claimed.settle({ tokens: 0, micros: took }) };
  }

  /**
   * Waits for calls in progress where only their end makes room. `now`: as charged at this moment.
   * @throws the signal's reason
   */
  async #claim(
    payer: Payer,
    ask: Ask,
    signal: AbortSignal,
    now?: Charged,
  ): Promise<Held | Refusal> {
    for (let charged = now; ; charged = undefined) {
      const { day, accounts } = charged ?? (await this.#charged(payer));
      const isTogether = this.#deps.sharing !== undefined && accounts.some(isCapped);
      const granted = isTogether
        ? await this.#grantTogether(day, accounts, ask)
        : grant(budgetsOf(accounts), ask);
      if (granted.kind === 'wait') {
        await this.#room(day, signal);
        continue;
      }
      if (granted.kind === 'granted') {
        const held = worstCase(ask, granted.outputTokens);
        if (!isTogether) await this.#hold(day, accounts, payer, held);
        return this.#held(day, payer, held, granted.outputTokens);
      }
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
    const opened = new SpendingDay(state, { day, endsAt }, this.#deps.sharing);
    return opened.load(() => this.#unread(day));
  }

  #unread(day: string): void {
    this.#deps.log.error('spending not readable', { day });
  }

  /** Stores a changed day: within a second for the newest one, at once for an older one. */
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
    return charged.map((one) => ({ ...one, row: day.ledgers.at(one.names) }));
  }

  async #charged(payer: Payer): Promise<Charged> {
    const known = await this.#deps.knownAs(payer);
    const day = await this.today();
    joinPersonChannels(day, payer, known);
    await this.#learnLimits(day, payer);
    return { day, accounts: this.#accounts(day, payer) };
  }

  /** Undefined where the call is not allowed because its price is unknown. */
  #askOf(planned: PlannedCall, { day, accounts }: Charged): Ask | undefined {
    const { model, inputTokens, outputTokens, countsMoney = false } = planned;
    const { prices, limits } = this.#deps.settings();
    const { currency, unpriced } = limits.budget;
    const ask = { inputTokens: Math.ceil(inputTokens * INPUT_MARGIN), outputTokens };
    const price = priceOf(model, prices, currency);
    if (price !== undefined) return { ...ask, price };
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

  /** @throws StoreError where the hold could not be stored; the call must not be made then. */
  async #hold(
    day: SpendingDay,
    accounts: readonly Account[],
    payer: Payer,
    held: Amount,
  ): Promise<void> {
    for (const { row } of accounts) day.change(row, (ledger) => this.#withHeld(ledger, held));
    if (!accounts.some(isCapped)) return;
    try {
      await day.store();
    } catch (error) {
      this.#settle(day, payer, held, NOTHING);
      throw error;
    }
  }

  /** The hold is stored with the grant. @throws StoreError */
  #grantTogether(day: SpendingDay, accounts: readonly Account[], ask: Ask): Promise<Grant> {
    const rows = accounts.map(({ row }) => row);
    return day.together(rows, (ledgers) => {
      const granted = grant(budgetsOf(accounts, ledgers), ask);
      if (granted.kind !== 'granted') return granted;
      const held = worstCase(ask, granted.outputTokens);
      for (const row of ledgers) row.value = this.#withHeld(row.value, held);
      return granted;
    });
  }

  #held(day: SpendingDay, payer: Payer, held: Amount, outputTokens: number): Held {
    let isOpen = true;
    const settle = (spent: Amount) => {
      if (isOpen) this.#settle(day, payer, held, spent);
      isOpen = false;
    };
    return { kind: 'held', outputTokens, settle };
  }

  /** The end of a call of another process is not heard of. @throws the signal's reason */
  async #room(day: SpendingDay, signal: AbortSignal): Promise<void> {
    const { clock, sharing } = this.#deps;
    if (sharing === undefined) return day.room(signal);
    await sleepOrWoken(clock, LOOK_MS, day.room(signal), signal);
  }

  #withHeld(ledger: Ledger, held: Amount): Ledger {
    const { sharing } = this.#deps;
    return sharing === undefined ? withHeld(ledger, held) : withHeldBy(sharing.owner, ledger, held);
  }

  #withSettled(ledger: Ledger, held: Amount, spent: Amount): Ledger {
    const { sharing } = this.#deps;
    return sharing === undefined
      ? withSettled(ledger, held, spent)
      : withSettledBy(sharing.owner, ledger, held, spent);
  }

  #settle(day: SpendingDay, payer: Payer, held: Amount, spent: Amount): void {
    // Looked up again: two names may have been linked to one person meanwhile.
    for (const account of this.#accounts(day, payer)) {
      day.change(account.row, (ledger) => this.#withSettled(ledger, held, spent));
      this.#deps.notes.spent(day, account, payer);
    }
    day.announceRoom();
    this.#storeSoon(day);
  }
}

const isCapped = ({ cap }: Account) => isLimited(cap);

/** Whether the call could be repeated in full after it was given up. */
function coversTwice(accounts: readonly Account[], ask: Ask): boolean {
  const twice = { ...ask, inputTokens: 2 * ask.inputTokens, outputTokens: 2 * ask.outputTokens };
  const granted = grant(budgetsOf(accounts), twice);
  return granted.kind === 'granted' && granted.outputTokens === twice.outputTokens;
}

/** `rows`: their ledgers, if they are not those of the accounts. */
const budgetsOf = (
  accounts: readonly Account[],
  rows: readonly LedgerRow[] = accounts.map(({ row }) => row),
) => rows.map((row, at) => ({ ledger: row.value, cap: accounts[at]?.cap ?? NOTHING }));

/** Merges the ledgers of a person who is known on several channels. */
function joinPersonChannels(day: SpendingDay, payer: Payer, { names }: Known): void {
  if (names.length > 0) day.ledgers.at(personBudgetNames(payer, names));
}
