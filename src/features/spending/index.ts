// Installs the budget check of model calls, and the commands that show and change budgets.

import type { PaidCalls } from '../../agent/agent.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { budgetGuard } from '../../kernel/guards.ts';
import type { TokenUsage } from '../../kernel/message/transcript.ts';
import { recordingGuard } from '../../kernel/observe/observed.ts';
import { createKnownAs } from '../../kernel/people/persons.ts';
import { t } from '../../lib/texts.ts';
import { assumedPrice, priceOf } from '../../providers/rules/model-names.ts';
import { LOCAL_ONLY } from '../local-models/index.ts';
import { createBudgetNotes } from './budget-notes.ts';
import { amountOf, type Price } from './rules/spending.ts';
import { Spending } from './spending.ts';
import { createBudgetOwners, SPENDING_SCOPE } from './spending-day.ts';
import {
  BUDGET_SUBJECT,
  budgetGauge,
  budgetQuestion,
  createBudgetAnswers,
  createSpendingService,
  spendingCommands,
  spentToday,
} from './spending-service.ts';

export { amountOf, type Price } from './rules/spending.ts';

export const PAID_CALLS = port<PaidCalls>('paid calls');

/** @throws StoreError */
export async function install(kernel: Kernel): Promise<void> {
  const { live, clock, log, store, bus, sessions, measuring, owners, questions, people } = kernel;
  const settings = () => ({
    limits: live.config.limits,
    prices: live.config.models.prices,
    timeZone: live.config.sessions.timeZone,
  });
  const knownAs = createKnownAs(people.persons);
  const ownerOf = createBudgetOwners(people.persons);
  const notes = createBudgetNotes({
    ...{ bus, log, ownerChat: owners.chat, now: () => clock.now() },
    currency: () => live.config.limits.budget.currency,
    askOwner: async (usedUp) => questions.ask(budgetQuestion(usedUp, await owners.askChat())),
  });
  const state = store.scope(SPENDING_SCOPE);
  const sharing = store.shared && {
    owner: store.shared.owner,
    isLive: store.shared.isLive,
    revision: () => store.revision(SPENDING_SCOPE),
  };
  const spending = kernel.resources.use(
    new Spending({ ...{ state, clock, log, notes }, knownAs, ownerOf, settings, sharing }),
  );
  await spending.today();
  const metrics = () => {
    kernel.afterwork.finish();
    return kernel.home.metrics;
  };
  const service = createSpendingService(spending, settings, ownerOf, sessions, {
    ...{ bus, metrics },
  });
  const only = kernel.use(LOCAL_ONLY);
  kernel.add.modelGuard(recordingGuard(measuring.calls.called, clock));
  kernel.add.modelGuard(budgetGuard(spending));
  kernel.provide(PAID_CALLS, only.paid(spending));
  kernel.add.answers(BUDGET_SUBJECT, createBudgetAnswers(service), 'configuration');
  kernel.add.status({ lines: async (origin) => [t`Today: ${await spentToday(origin, service)}`] });
  kernel.add.gauges(async () => [budgetGauge(await service.all())]);
  kernel.add.command(...spendingCommands(service));
  kernel.add.routes(['GET /api/v1/usage', 'GET /api/v1/usage/events'], async () =>
    (await import('./usage-routes.ts')).usageRoutes({
      ...{ service, state, ownerOf, live, clock, metrics, measuring },
    }),
  );
  kernel.add.routes(['POST /api/model-calls', 'POST /api/model-calls/:id'], async () =>
    (await import('./lending-routes.ts')).lendingRoutes(kernel.modelCalls),
  );
}

// The cost of a model call by the configured prices, in millionths of the currency.

/** Undefined where the price is unknown. */
export function knownCost({ config }: LiveConfig, model: string, usage: TokenUsage) {
  const price = priceOf(model, config.models.prices, config.limits.budget.currency);
  return price === undefined ? undefined : microsOf(price, usage);
}

/** For a model of unknown price, the cost that the budget check assumes. */
export function chargedCost(live: LiveConfig, model: string, usage: TokenUsage) {
  const { unpriced, currency } = live.config.limits.budget;
  const known = knownCost(live, model, usage);
  const price = known === undefined ? assumedPrice(unpriced, currency) : undefined;
  return price === undefined ? known : microsOf(price, usage);
}

function microsOf(price: Price, usage: TokenUsage): number {
  const { inputTokens: input, outputTokens: output, cachedTokens: cached, writtenTokens } = usage;
  const written = writtenTokens === undefined ? {} : { written: writtenTokens };
  return amountOf(price, { input, output, cached, ...written }).micros;
}
