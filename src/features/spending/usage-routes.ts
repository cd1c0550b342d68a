// The use of models over HTTP: today's budgets, followed, and the last 30 days.

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { endpoint, type RouteHandlers, watched } from '../../kernel/http-routes.ts';
import type { Durations } from '../../kernel/observe/metrics.ts';
import { defined } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { createDayText } from '../../lib/time/zone-time.ts';
import { type ConfiguredPrice, priceOf } from '../../providers/rules/model-names.ts';
import { type CallLine, callLines, usageIn } from './call-lines.ts';
import { type BudgetView, budgetCap, TOTAL } from './rules/budget-limits.ts';
import {
  type Amount,
  amountOf,
  capFor,
  EMPTY_LEDGER,
  isLimited,
  NOTHING,
  plus,
} from './rules/spending.ts';
import {
  type Spent,
  type UsageGroup,
  type UsageReport,
  type UsageToday,
  usageReport,
  usageToday,
} from './rules/usage.ts';
import { type BudgetOwners, storedDays } from './spending-day.ts';
import type { SpendingService } from './spending-service.ts';

const DAYS = 30;
const DAY_MS = 86_400_000;
const PERSON = 'person ';
const JOB = 'job ';

type UsageRoutesDeps = Pick<Kernel, 'live' | 'clock' | 'measuring'> & {
  readonly service: Pick<SpendingService, 'all'>;
  readonly state: KeyValueStore;
  readonly ownerOf: BudgetOwners;
  /** The metrics file, up to date. */
  metrics(): string;
};

export function usageRoutes(deps: UsageRoutesDeps) {
  return {
    'GET /api/v1/usage': endpoint(
      {
        summary: t`Tokens and cost of the last 30 days by day, person, job, model and channel`,
        answer: usageReport,
      },
      () => reportOf(deps),
    ),
    'GET /api/v1/usage/events': watched(
      {
        summary: t`What was used today and what is left of the budgets, now and after each change`,
        answer: usageToday,
      },
      deps.clock,
      async () => {
        const { limits } = deps.live.config;
        const used = await deps.service.all();
        const isTotalUsed = used.some(({ key }) => key === TOTAL);
        const total = { key: TOTAL, ledger: EMPTY_LEDGER, cap: budgetCap([TOTAL], limits) };
        return todayView(isTotalUsed ? used : [total, ...used], limits.budget.currency);
      },
    ),
  } satisfies RouteHandlers;
}

async function reportOf(deps: UsageRoutesDeps): Promise<UsageReport> {
  const { limits, models, sessions } = deps.live.config;
  const { currency } = limits.budget;
  const dayText = createDayText();
  const now = deps.clock.now();
  const names = Array.from({ length: DAYS }, (_, ago) =>
    dayText(now - (DAYS - 1 - ago) * DAY_MS, sessions.timeZone),
  );
  const today = names.at(-1) ?? '';
  const stored = await storedDays(deps.state, names[0] ?? '');
  const past = stored.filter(({ day }) => day !== today);
  // The rows of today are stored behind the calls.
  const used = await deps.service.all();
  const calls = new CallSums(models.prices, currency);
  for await (const call of callLines(deps.metrics())) {
    if (Date.parse(call.timestamp) >= now - DAYS * DAY_MS) calls.add(call);
  }
  const totals = new Map([
    ...past.map(({ day, rows }) => [day, rows.find(({ key }) => key === TOTAL)?.ledger] as const),
    [today, used.find(({ key }) => key === TOTAL)?.ledger] as const,
  ]);
  const people = new Groups();
  const jobs = new Groups();
  const rows = past
    .flatMap((day) => day.rows)
    .map(async ({ key, names: known, ledger }) => {
      const { name } = key.startsWith(PERSON) ? await deps.ownerOf(known) : {};
      return { key, ledger, name };
    });
  for (const { key, name, ledger } of [...(await Promise.all(rows)), ...used]) {
    const { spent, calls: count } = ledger;
    if (key.startsWith(JOB)) jobs.add(key.slice(JOB.length), spent, count);
    if (!key.startsWith(PERSON)) continue;
    const id = key.slice(PERSON.length);
    people.add(name === undefined ? id : `${name} (${id})`, spent, count);
  }
  return {
    ...{ currency, people: people.list, jobs: jobs.list },
    times: timesOf(deps.measuring.durations.all),
    days: [...new Set(names)].map((day) => {
      const { spent: { tokens, micros } = { tokens: 0, micros: 0 }, calls: count = 0 } =
        totals.get(day) ?? {};
      return { day, tokens, micros, calls: count };
    }),
    ...defined({ calls: calls.view }),
  };
}

function todayView(views: readonly BudgetView[], currency: string): UsageToday {
  const total = views.find(({ key }) => key === TOTAL)?.ledger;
  return {
    currency,
    spent: { ...(total?.spent ?? NOTHING), calls: total?.calls ?? 0 },
    budgets: views
      .filter(({ cap }) => isLimited(cap))
      .map(({ key, name, ledger, cap }) => {
        const limit = capFor(cap, ledger);
        const { tokens, micros: cost } = plus(ledger.spent, ledger.held);
        return {
          ...{ key, limit, spent: { ...ledger.spent, calls: ledger.calls } },
          ...(name === undefined ? {} : { name }),
          left: {
            tokens: Math.max(0, limit.tokens - tokens),
            micros: Math.max(0, limit.micros - cost),
          },
        };
      }),
  };
}

/** Sums by name. */
class Groups {
  readonly #sums = new Map<string, Spent>();

  add(name: string, amount: Amount, calls: number): void {
    const sum = this.#sums.get(name) ?? { ...NOTHING, calls: 0 };
    this.#sums.set(name, { ...plus(sum, amount), calls: sum.calls + calls });
  }

  /** The costliest first. */
  get list(): UsageGroup[] {
    return [...this.#sums]
      .map(([name, sum]) => ({ name, ...sum }))
      .toSorted((one, other) => other.micros - one.micros || other.tokens - one.tokens);
  }
}

class CallSums {
  readonly #models = new Groups();
  readonly #channels = new Groups();
  readonly #answering: number[] = [];
  readonly #waiting: number[] = [];
  #since = Number.POSITIVE_INFINITY;
  #failed = 0;
  #inputTokens = 0;
  #cachedTokens = 0;
  readonly #prices: readonly ConfiguredPrice[];
  readonly #currency: string;

  constructor(prices: readonly ConfiguredPrice[], currency: string) {
    this.#prices = prices;
    this.#currency = currency;
  }

  add(line: CallLine): void {
    const usage = usageIn(line);
    const price = priceOf(line.model, this.#prices, this.#currency);
    const cost = amountOf(price, usage);
    this.#models.add(line.model, cost, 1);
    const channel = line.session?.split(':', 1)[0];
    if (channel !== undefined) this.#channels.add(channel, cost, 1);
    this.#since = Math.min(this.#since, Date.parse(line.timestamp));
    this.#inputTokens += usage.input;
    this.#cachedTokens += usage.cached;
    if (line.status === 'ok') this.#answering.push(line.elapsed_ms);
    else this.#failed += 1;
    if (line.waited_ms !== undefined) this.#waiting.push(line.waited_ms);
  }

  get view(): UsageReport['calls'] {
    if (this.#since === Number.POSITIVE_INFINITY) return undefined;
    return {
      since: this.#since,
      models: this.#models.list,
      channels: this.#channels.list,
      inputTokens: this.#inputTokens,
      cachedTokens: this.#cachedTokens,
      failed: this.#failed,
      answering: percentilesOf(this.#answering),
      ...(this.#waiting.length === 0 ? {} : { waiting: percentilesOf(this.#waiting) }),
    };
  }
}

function timesOf({ queue, tools, delivery }: Durations['all']): UsageReport['times'] {
  return {
    ...(queue.length === 0 ? {} : { queue: percentilesOf(queue) }),
    ...(tools.length === 0 ? {} : { tools: percentilesOf(tools) }),
    ...(delivery.length === 0 ? {} : { delivery: percentilesOf(delivery) }),
  };
}

/** The smallest value that the share of all values does not exceed. */
function percentilesOf(values: readonly number[]) {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
  return { count: sorted.length, p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}
