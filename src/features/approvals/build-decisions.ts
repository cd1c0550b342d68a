// Builds what asks people and acts on their answers: questions, calls to be allowed, and the origins
// that say who may be asked for what.

import { randomBytes } from 'node:crypto';
import type { Agent } from '../../agent/agent.ts';
import type { SideModel } from '../../agent/side-model.ts';
import type { Collections } from '../../app/collections.ts';
import type { BackgroundWork } from '../../app/gateway-service.ts';
import { NOTICES, type OwnerDoor } from '../../app/owner-door.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { BusStore, EmbeddedStore, StateStore } from '../../kernel/bus/store/store.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { ChannelManager } from '../../kernel/delivery/manager.ts';
import { createSpentButtons, type SpentButtons } from '../../kernel/delivery/spent-buttons.ts';
import { policyOf } from '../../kernel/intake/doors.ts';
import type { Judge } from '../../kernel/intake/judge.ts';
import type { AccountName } from '../../kernel/message/account.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import type { Measuring } from '../../kernel/observe/build-telemetry.ts';
import { auditedHandlers } from '../../kernel/questions/audited-handlers.ts';
import { createQuestions, type Questions } from '../../kernel/questions/questions.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import { createAgainHandler } from '../../kernel/turns/asides.ts';
import { createOrigins, type Origins } from '../../kernel/turns/origins.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { buildDrafts } from '../letters/build-drafts.ts';
import type { Drafts } from '../letters/drafts.ts';
import { MAIL_SUBJECT } from '../mail-bridge/bridge-answers.ts';
import { type BuiltMailBridge, buildMailBridge } from '../mail-bridge/build-mail-bridge.ts';
import type { BuiltMemory } from '../memory/build-memory.ts';
import { buildReflectionClock } from '../memory/build-reflection.ts';
import { FORGET_SUBJECT } from '../memory/memory-desk.ts';
import { REFLECTION_SUBJECT, type ReflectionDesk } from '../memory/reflection-desk.ts';
import type { People } from '../people/people.ts';
import { createKnownAs } from '../people/people.ts';
import { createStrangerAnswers } from '../people/stranger-answers.ts';
import { BUDGET_SUBJECT, createBudgetAnswers } from '../spending/budget-question.ts';
import type { SpendingDesk } from '../spending/spending-desk.ts';
import { type Approvals, createApprovals } from './approvals.ts';
import { openAsks } from './ask-rows.ts';
import { ASK_SUBJECT, type Asks, createAsks } from './asks.ts';
import { createIsAwaited } from './awaited.ts';
import { createStanding, type Standing } from './standing.ts';
import { openStandingRows } from './standing-rows.ts';

export type DecisionParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly rows: OpenRows;
  readonly collections: Collections;
  readonly store: StateStore & Pick<BusStore, 'hasWrittenTo'> & Pick<EmbeddedStore, 'revision'>;
  readonly bus: MessageBus;
  readonly people: People;
  readonly judge: Judge;
  readonly ownerDoor: OwnerDoor;
  readonly agent: Agent;
  readonly desk: SpendingDesk;
  readonly side: SideModel;
  readonly remembering: Pick<BuiltMemory, 'desk' | 'reflecting' | 'reflectionStamp'>;
  readonly measuring: Pick<Measuring, 'audit'>;
  manager(): ChannelManager;
};

export type Deciding = {
  readonly questions: Questions;
  readonly approvals: Approvals;
  readonly standing: Standing;
  readonly origins: Origins;
  readonly drafts: Drafts;
  readonly asks: Asks;
  readonly reflect: ReflectionDesk['reflect'];
  readonly thinkOver: BackgroundWork;
  readonly mails: BuiltMailBridge['desk'];
  readonly bridge: BuiltMailBridge['bridge'];
  /** Where an owner is asked. */
  ownerChat(): Promise<ChatRef>;
};

export function buildDecisions(parts: DecisionParts): Deciding {
  const { live, clock, log, store, bus, people, agent } = parts;
  const mediumOf = (channel: string) => policyOf(channel, live.config).medium;
  const buttons = createSpentButtons({
    state: store.scope(SPENT_SCOPE),
    ...{ bus, clock, log },
    channel: (name) => parts.manager().channel(name),
  });
  const questions = createQuestions({
    state: store.scope('questions'),
    ...{ bus, clock, log, randomBytes },
    handlers: () =>
      auditedHandlers(
        {
          approval: approvals.handler,
          stranger: createStrangerAnswers(people),
          [BUDGET_SUBJECT]: createBudgetAnswers(parts.desk),
          again: createAgainHandler({ bus, now: () => clock.now() }),
          [MAIL_SUBJECT]: mails.handler,
          draft: drafts.handler,
          [FORGET_SUBJECT]: parts.remembering.desk.handler,
          [REFLECTION_SUBJECT]: reflection.handler,
          [ASK_SUBJECT]: asks.handler,
        },
        parts.measuring.audit,
      ),
    spendButtons: buttons.spend,
    hasButtons: (name) => parts.manager().channel(name)?.choices !== undefined,
  });
  const isThere = (name: AccountName) =>
    (parts.manager().status(name)?.kind ?? 'stopped') !== 'stopped';
  // What a mail says, its sender may not have written: a yes has to come by chat.
  const ownerChat = (): Promise<ChatRef> =>
    parts.ownerDoor.chat((name) => isThere(name) && mediumOf(name) === 'chat');
  const mails = buildMailBridge({ ...parts, questions: () => questions, ownerChat });
  const { persons } = people;
  const origins = createOrigins({
    judge: parts.judge,
    knownAs: createKnownAs(persons),
    mediumOf,
    policies: () => live.config.tools,
  });
  const standing = createStanding({
    rows: openStandingRows(parts.rows),
    ...{ clock, log, origins, audit: parts.measuring.audit, outsideChats: NOTICES },
    days: () => live.config.tools.approvals.alwaysDays,
  });
  const letters = {
    live,
    clock,
    log,
    store,
    bus,
    persons,
    questions,
    standing,
    ownerChat,
    isThere,
  };
  const drafts: Drafts = buildDrafts(letters);
  const approvals: Approvals = createApprovals({
    calls: parts.collections.calls,
    ...{
      bus,
      questions,
      standing,
      clock,
      log,
      ownerChat,
      isAwaited: createIsAwaited(parts.collections),
    },
    run: (call, signal) => agent.runApproved(call, signal),
    timeZone: () => live.config.sessions.timeZone,
  });
  const asks = createAsks({
    asks: openAsks(parts.rows),
    ...{ bus, questions, clock, log },
  });
  const { side } = parts;
  const reflection = parts.remembering.reflecting({
    side: () => side,
    questions: () => questions,
    ownerChat,
  });
  return {
    questions: takingUp(questions, [drafts, asks], buttons),
    approvals,
    standing,
    origins,
    drafts,
    asks,
    reflect: (message) => reflection.reflect(message),
    thinkOver: buildReflectionClock(parts, reflection, ownerChat),
    mails: mails.desk,
    bridge: mails.bridge,
    ownerChat,
  };
}

const SPENT_SCOPE = 'spent-buttons';

/** What a process that is gone had not come to ask is asked before anything else. */
function takingUp(
  questions: Questions,
  unasked: readonly { takeUp(): Promise<void> }[],
  buttons: SpentButtons,
): Questions {
  return {
    ...questions,
    async run(signal) {
      for (const each of unasked) await each.takeUp();
      await Promise.all([questions.run(signal), buttons.run(signal)]);
    },
  };
}
