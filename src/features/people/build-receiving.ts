// Builds the way in: the gate with what stands at it for groups, strangers and people who write much.

import { randomBytes } from 'node:crypto';
import type { Foundations } from '../../app/foundations.ts';
import type { OwnerDoor } from '../../app/owner-door.ts';
import { PAIRING_SCOPE } from '../../app/state.ts';
import type { CommandDeps } from '../../kernel/commands/command.ts';
import { createGroupBuffer, type GroupBuffer } from '../../kernel/intake/group-buffer.ts';
import { createGroupIntake } from '../../kernel/intake/group-intake.ts';
import type { Judge } from '../../kernel/intake/judge.ts';
import { createReceiver, type ReceiveDeps, type Receiver } from '../../kernel/intake/receive.ts';
import type { Deciding } from '../approvals/build-decisions.ts';
import type { TellOwner } from '../schedule/owner-notes.ts';
import { buildFairUse } from './build-fair-use.ts';
import { createKnock } from './knock.ts';
import { createOwnerNotices, type OwnerNoticesDeps } from './owner-notices.ts';
import type { People } from './people.ts';

export type ReceivingParts = Foundations &
  Pick<ReceiveDeps, 'arrived' | 'fetchAttachments'> &
  Pick<OwnerNoticesDeps, 'noticeChat'> & {
    readonly people: People;
    readonly judge: Judge;
    readonly deciding: Pick<Deciding, 'questions' | 'bridge' | 'drafts'>;
    readonly commands: CommandDeps;
    readonly ownerDoor: Pick<OwnerDoor, 'wroteIn'>;
    readonly tell: TellOwner;
  };

export type BuiltReceiving = {
  readonly receiver: Receiver;
  /** What was said in groups, not to us. */
  readonly groupTalk: GroupBuffer;
};

export function buildReceiving(parts: ReceivingParts): BuiltReceiving {
  const { store, bus, clock, log, people, judge, deciding, commands, noticeChat, tell } = parts;
  const { pairing, persons, strangers, decisions } = people;
  const { questions, bridge, drafts } = deciding;
  const state = store.scope(PAIRING_SCOPE);
  const groupTalk = createGroupBuffer(store.scope('groups'), clock);
  const announce = createOwnerNotices({ state, bus, questions, strangers, clock, noticeChat });
  const codes = { strangers, now: () => clock.now(), randomBytes };
  const receiver = createReceiver({
    ...{ bus, pairing, commands, log, judge, questions, bridge, drafts },
    groups: createGroupIntake({ buffer: groupTalk, tellOwner: tell }),
    knock: createKnock({ ...codes, bus, decisions, judge, announce, log }),
    fairUse: buildFairUse(parts, persons),
    arrived: parts.arrived,
    tellOwner: tell,
    ownerWroteIn: parts.ownerDoor.wroteIn,
    fetchAttachments: parts.fetchAttachments,
  });
  return { receiver, groupTalk };
}
