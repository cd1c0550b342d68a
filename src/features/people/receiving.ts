// Builds the way in: the gate with what stands at it for groups, strangers and people who write much.

import { randomBytes } from 'node:crypto';
import type { Foundations } from '../../app/foundations.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { StateStore } from '../../kernel/bus/store/store.ts';
import type { Commands } from '../../kernel/commands/commands.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import { createFairUse, type FairUse } from '../../kernel/intake/fair-use.ts';
import {
  createGroupBuffer,
  createGroupIntake,
  type GroupBuffer,
} from '../../kernel/intake/group-intake.ts';
import type { Judge } from '../../kernel/intake/judge.ts';
import { createReceiver, type ReceiveDeps, type Receiver } from '../../kernel/intake/receive.ts';
import type { Owners } from '../../kernel/owners.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Deciding } from '../approvals/build-decisions.ts';
import { createKnock, createOwnerNotices } from './knock.ts';
import { createKnownAs, type People } from './people.ts';
import type { Persons } from './persons.ts';

export type ReceivingParts = Foundations &
  Pick<ReceiveDeps, 'arrived' | 'fetchAttachments'> & {
    readonly people: People;
    readonly judge: Judge;
    readonly questions: Questions;
    readonly deciding: Pick<Deciding, 'bridge' | 'drafts'>;
    readonly commands: Commands;
    readonly owners: Pick<Owners, 'wroteIn' | 'tell' | 'noticeChat'>;
  };

export type BuiltReceiving = {
  readonly receiver: Receiver;
  /** What was said in groups, not to us. */
  readonly groupTalk: GroupBuffer;
};

export function buildReceiving(parts: ReceivingParts): BuiltReceiving {
  const { store, bus, clock, log, people, judge, deciding, commands, questions } = parts;
  const { tell, noticeChat, wroteIn } = parts.owners;
  const { pairing, persons, strangers, decisions } = people;
  const { bridge, drafts } = deciding;
  const groupTalk = createGroupBuffer(store.scope('groups'), clock);
  const announce = createOwnerNotices({
    rows: parts.rows,
    bus,
    questions,
    strangers,
    clock,
    noticeChat,
  });
  const codes = { strangers, now: () => clock.now(), randomBytes };
  const receiver = createReceiver({
    ...{ bus, people, pairing, commands, log, judge, questions, bridge, drafts },
    groups: createGroupIntake({ buffer: groupTalk, tellOwner: tell }),
    knock: createKnock({ ...codes, bus, decisions, judge, announce, log }),
    fairUse: buildFairUse(parts, persons),
    arrived: parts.arrived,
    tellOwner: tell,
    ownerWroteIn: wroteIn,
    fetchAttachments: parts.fetchAttachments,
  });
  return { receiver, groupTalk };
}

// Builds what keeps count of messages.

export type FairUseParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: StateStore;
  readonly bus: Pick<MessageBus, 'send'>;
};

export function buildFairUse(parts: FairUseParts, persons: Pick<Persons, 'of'>): FairUse {
  const { live, clock, log, store, bus } = parts;
  return createFairUse({
    ...{ state: store.scope('fair-use'), bus, clock, log },
    knownAs: createKnownAs(persons),
    settings: () => ({ limits: live.config.limits, timeZone: live.config.sessions.timeZone }),
  });
}
