// Builds what watches over the costs of models: the guard that every call passes, and the desk where
// people see and change it.

import type { PaidCalls, SpendingGuard } from '../../agent/spending.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { StateStore } from '../../kernel/bus/store/store.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Contributions } from '../../kernel/contributions.ts';
import type { TokenUsage } from '../../kernel/message/transcript.ts';
import type { Measuring } from '../../kernel/observe/build-telemetry.ts';
import { observedSpending } from '../../kernel/observe/observed.ts';
import type { Owners } from '../../kernel/owners.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { assumedPrice, priceOf } from '../../providers/rules/model-names.ts';
import { createKnownAs } from '../people/people.ts';
import type { Persons } from '../people/persons.ts';
import { createBudgetNotes } from './budget-notes.ts';
import { createBudgetOwners } from './budget-owners.ts';
import { amountOf, type Price } from './rules/spending.ts';
import { Spending } from './spending.ts';
import { spendingCommands } from './spending-commands.ts';
import { SPENDING_SCOPE } from './spending-day.ts';
import {
  BUDGET_SUBJECT,
  budgetQuestion,
  createBudgetAnswers,
  createSpendingDesk,
  type SpendingDesk,
} from './spending-desk.ts';

export type SpendingParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: StateStore;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly sessions: Pick<SessionStore, 'load'>;
  readonly measuring: Pick<Measuring, 'calls'>;
  readonly owners: Pick<Owners, 'chat' | 'askChat'>;
  readonly questions: Pick<Questions, 'ask'>;
  readonly people: { readonly persons: Pick<Persons, 'of' | 'inChat'> };
  readonly add: Contributions;
};

/** Before it is asked where the conversation may go at all. */
export type Counted = SpendingGuard & Pick<PaidCalls, 'reservePaid'>;

/** @throws StoreError */
export async function buildSpending(
  { live, clock, log, store, bus, sessions, measuring, owners, questions, ...parts }: SpendingParts,
  resources: AsyncDisposableStack,
): Promise<{ readonly counted: Counted; readonly desk: SpendingDesk }> {
  const settings = () => ({
    limits: live.config.limits,
    prices: live.config.models.prices,
    timeZone: live.config.sessions.timeZone,
  });
  const { persons } = parts.people;
  const knownAs = createKnownAs(persons);
  const ownerOf = createBudgetOwners(persons);
  const notes = createBudgetNotes({
    bus,
    log,
    ownerChat: owners.chat,
    now: () => clock.now(),
    currency: () => live.config.limits.budget.currency,
    askOwner: async (usedUp) => questions.ask(budgetQuestion(usedUp, await owners.askChat())),
  });
  const state = store.scope(SPENDING_SCOPE);
  const spending = resources.use(
    new Spending({ ...{ state, clock, log, notes }, knownAs, ownerOf, settings }),
  );
  await spending.today();
  const observed = {
    ...observedSpending(spending, measuring.calls.called, clock),
    reservePaid: (...call: Parameters<PaidCalls['reservePaid']>) => spending.reservePaid(...call),
  };
  const desk = createSpendingDesk(spending, settings, ownerOf, sessions);
  parts.add.answers(BUDGET_SUBJECT, createBudgetAnswers(desk), 'configuration');
  parts.add.command(...spendingCommands(desk));
  return { counted: observed, desk };
}

// What a model call costs by the configured prices, in millionths of the currency.

/** Undefined where the price is not known. */
export function knownCost({ config }: LiveConfig, model: string, usage: TokenUsage) {
  const price = priceOf(model, config.models.prices, config.limits.budget.currency);
  return price === undefined ? undefined : microsOf(price, usage);
}

/** A model of unknown price costs what the spending guard charges for it. */
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
