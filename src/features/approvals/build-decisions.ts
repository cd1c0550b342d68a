// Builds what asks people and acts on their answers: calls to be allowed, letters, mails, questions of the agent.

import type { Agent } from '../../agent/agent.ts';
import type { SideModel } from '../../agent/side-model.ts';
import type { Collections } from '../../app/collections.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { BusStore, EmbeddedStore, StateStore } from '../../kernel/bus/store/store.ts';
import type { ChannelDirectory } from '../../kernel/channels.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Contributions } from '../../kernel/contributions.ts';
import { policyOf } from '../../kernel/intake/doors.ts';
import type { Measuring } from '../../kernel/observe/build-telemetry.ts';
import { NOTICES, type Owners } from '../../kernel/owners.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import { createAgainHandler } from '../../kernel/turns/edits.ts';
import type { Origins } from '../../kernel/turns/origins.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { buildDrafts } from '../letters/build-drafts.ts';
import type { Drafts } from '../letters/drafts.ts';
import { buildMailBridge, type MailBridge } from '../mail-bridge/mail-bridge.ts';
import type { BuiltMemory } from '../memory/build-memory.ts';
import { memoryCommands } from '../memory/memory-commands.ts';
import { buildReflectionClock } from '../memory/reflection-clock.ts';
import { REFLECTION_SUBJECT } from '../memory/reflection-desk.ts';
import type { People } from '../people/people.ts';
import { createStrangerAnswers } from '../people/strangers.ts';
import { approvalCommands } from './approval-commands.ts';
import { type Approvals, createApprovals, createIsAwaited } from './approvals.ts';
import { ASK_SUBJECT, type Asks, createAsks, openAsks } from './asks.ts';
import { approvalsStage } from './stage.ts';
import { createStanding, openStandingRows, type Standing } from './standing.ts';

export type DecisionParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly rows: OpenRows;
  readonly collections: Collections;
  readonly store: StateStore & Pick<BusStore, 'hasWrittenTo'> & Pick<EmbeddedStore, 'revision'>;
  readonly bus: MessageBus;
  readonly people: People;
  readonly channels: ChannelDirectory;
  readonly owners: Pick<Owners, 'askChat'>;
  readonly questions: Questions;
  readonly origins: Origins;
  readonly agent: Pick<Agent, 'runApproved'>;
  readonly side: SideModel;
  readonly remembering: Pick<BuiltMemory, 'desk' | 'reflecting' | 'reflectionStamp'>;
  readonly measuring: Pick<Measuring, 'audit'>;
  readonly add: Contributions;
};

export type Deciding = {
  readonly approvals: Approvals;
  readonly standing: Standing;
  readonly drafts: Drafts;
  readonly asks: Asks;
  readonly bridge: MailBridge;
};

export function buildDecisions(parts: DecisionParts): Deciding {
  const { live, clock, log, bus, people, agent, questions, origins, owners, add } = parts;
  add.answers('stranger', createStrangerAnswers(people), 'person');
  add.answers('again', createAgainHandler({ bus, now: () => clock.now() }));
  const bridge = buildMailBridge(parts);
  const standing = createStanding({
    rows: openStandingRows(parts.rows),
    ...{ clock, log, origins, audit: parts.measuring.audit, outsideChats: NOTICES },
    days: () => live.config.tools.approvals.alwaysDays,
  });
  const drafts = buildDrafts({ ...parts, persons: people.persons, standing });
  const approvals = createApprovals({
    calls: parts.collections.calls,
    ...{ bus, questions, standing, clock, log, ownerChat: owners.askChat },
    isAwaited: createIsAwaited(parts.collections),
    timeZone: () => live.config.sessions.timeZone,
  });
  const asks = createAsks({
    asks: openAsks(parts.rows),
    ...{ bus, questions, clock, log },
  });
  const { calls } = parts.collections;
  const run: Agent['runApproved'] = (call, signal) => agent.runApproved(call, signal);
  add.stage(approvalsStage({ calls, asks, bus, run }));
  const reflection = parts.remembering.reflecting({ side: parts.side, ownerChat: owners.askChat });
  add.answers('approval', approvals.handler, 'approval');
  add.answers(ASK_SUBJECT, { ...asks.handler, takeUp: () => asks.takeUp() });
  add.answers(REFLECTION_SUBJECT, reflection.handler);
  for (const kept of [asks, approvals, standing]) add.personalData(kept);
  add.task(buildReflectionClock(parts, reflection, owners.askChat));
  const mediumOf = (channel: string) => policyOf(channel, live.config).medium;
  add.command(...approvalCommands({ approvals, drafts, standing, mediumOf }));
  add.command(...memoryCommands(parts.remembering.desk, reflection));
  return { approvals, standing, drafts, asks, bridge };
}
