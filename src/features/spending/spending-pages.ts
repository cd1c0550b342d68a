// The book of what was spent, a page a day: opens the page of today, and stores pages behind the work.

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createLocalDays } from '../../lib/time/zone-time.ts';
import { SpendingDay } from './spending-day.ts';

export type SpendingPagesDeps = {
  readonly state: KeyValueStore;
  readonly clock: Clock;
  readonly log: Logger;
  timeZone(): string;
};

/** Stands where nothing is to be stored later any more. */
const NO_TIMER: Disposable = { [Symbol.dispose]: () => undefined };
const STORE_AFTER_MS = 1000;
const KEEP_MS = 400 * 86_400_000;

export class SpendingPages implements AsyncDisposable {
  readonly #deps: SpendingPagesDeps;
  readonly #dayOf = createLocalDays();
  #newest: SpendingDay | undefined;
  #loading: { readonly day: string; readonly page: Promise<SpendingDay> } | undefined;
  #timer: Disposable | undefined;

  constructor(deps: SpendingPagesDeps) {
    this.#deps = deps;
  }

  /** Today's, where it was opened before. */
  get opened(): SpendingDay | undefined {
    const page = this.#newest;
    return page === undefined || this.#deps.clock.now() >= page.endsAt ? undefined : page;
  }

  /** Today's. @throws StoreError where it cannot be read; the next call tries again */
  async today(): Promise<SpendingDay> {
    const { clock, timeZone } = this.#deps;
    const { day, endsAt } = this.#dayOf(clock.now(), timeZone());
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

  /** A page that was changed: within a second where it is the newest, an older one now. */
  storeSoon(page: SpendingDay): void {
    if (page !== this.#newest) this.#storeNow(page);
    this.#timer ??= this.#deps.clock.timer(STORE_AFTER_MS, () => {
      this.#timer = undefined;
      if (this.#newest !== undefined) this.#storeNow(this.#newest);
    });
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

  #storeNow(page: SpendingDay): void {
    const { log } = this.#deps;
    page.store().catch((error) => log.warn('spending not stored', { error }));
  }
}
