// Builds what watches over the costs of models: the guard that every call passes, and the desk where
// people see and change it.

import type { PaidCalls, SpendingGuard } from '../../agent/spending.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { StateStore } from '../../kernel/bus/store/store.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import type { Measuring } from '../../kernel/observe/build-telemetry.ts';
import { observedSpending } from '../../kernel/observe/observed.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Deciding } from '../approvals/build-decisions.ts';
import { createKnownAs, type KnownAs } from '../people/people.ts';
import type { Persons } from '../people/persons.ts';
import { createBudgetNotes } from './budget-notes.ts';
import { createBudgetOwners } from './budget-owners.ts';
import { budgetQuestion } from './budget-question.ts';
import { Spending } from './spending.ts';
import { createSpendingDesk, type SpendingDesk } from './spending-desk.ts';

/** Where what was spent lives in the store. */
export const SPENDING_SCOPE = 'spending';

export type SpendingParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: StateStore;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly sessions: Pick<SessionStore, 'load'>;
  readonly measuring: Pick<Measuring, 'calls'>;
};

/** Where an owner is told, and by whom asked. */
export type Asking = {
  ownerChat(): Promise<ChatRef>;
  /** Built later than this, as the other. */
  persons(): Pick<Persons, 'of' | 'inChat'>;
  deciding(): Pick<Deciding, 'questions' | 'ownerChat'>;
};

/** Before it is asked where the conversation may go at all. */
export type Counted = SpendingGuard & Pick<PaidCalls, 'reservePaid'>;

/** @throws StoreError */
export async function buildSpending(
  { live, clock, log, store, bus, sessions, measuring }: SpendingParts,
  asking: Asking,
  resources: AsyncDisposableStack,
): Promise<{ readonly counted: Counted; readonly desk: SpendingDesk }> {
  const settings = () => ({
    limits: live.config.limits,
    prices: live.config.models.prices,
    timeZone: live.config.sessions.timeZone,
  });
  const knownAs: KnownAs = (message) => createKnownAs(asking.persons())(message);
  const ownerOf = createBudgetOwners(asking.persons);
  const notes = createBudgetNotes({
    bus,
    log,
    ownerChat: asking.ownerChat,
    now: () => clock.now(),
    currency: () => live.config.limits.budget.currency,
    async askOwner(usedUp) {
      const { questions, ownerChat } = asking.deciding();
      await questions.ask(budgetQuestion(usedUp, await ownerChat()));
    },
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
  return { counted: observed, desk: createSpendingDesk(spending, settings, ownerOf, sessions) };
}
