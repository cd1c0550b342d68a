// Installs the way in: the gate with what stands at it for groups, unknown senders and people who write much.

import { randomBytes } from 'node:crypto';
import { DOOR_OWNER } from '../../channels/door.ts';
import { RECEIVER } from '../../kernel/delivery/manager.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { ATTACHMENTS } from '../../kernel/intake/attachments.ts';
import { createFairUse } from '../../kernel/intake/fair-use.ts';
import {
  createGroupBuffer,
  createGroupIntake,
  type GroupBuffer,
} from '../../kernel/intake/group-intake.ts';
import { createReceiver } from '../../kernel/intake/receive.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { createKnownAs } from '../../kernel/people/people.ts';
import { createStrangerAnswers } from '../../kernel/people/strangers.ts';
import { createAgainHandler } from '../../kernel/turns/edits.ts';
import { MEMORY } from '../memory/install.ts';
import { closeDecided, createKnock, createOwnerNotices } from './knock.ts';
import { peopleCommands } from './people-commands.ts';

/** What was said in groups, not to us. */
export const GROUP_TALK = port<GroupBuffer>('group talk');

export function install(kernel: Kernel): void {
  const { live, store, rows, bus, clock, log, people, judge, commands, questions, contributed } =
    kernel;
  const { owners, mediumOf, buttons, add } = kernel;
  const { tell, noticeChat, wroteIn } = owners;
  const { pairing, persons, strangers, decisions } = people;
  const groupTalk = createGroupBuffer(rows, clock);
  const announce = createOwnerNotices({ rows, bus, questions, strangers, clock, noticeChat });
  const codes = { strangers, now: () => clock.now(), randomBytes };
  const attachments = kernel.use(ATTACHMENTS);
  add.intake(createKnock({ ...codes, bus, decisions, judge, announce, log }));
  const receiver = createReceiver({
    ...{ bus, people, pairing, commands, log, judge, questions },
    order: kernel.orders.intake,
    steps: contributed.intake(),
    groups: createGroupIntake({ buffer: groupTalk, tellOwner: tell }),
    fairUse: createFairUse({
      ...{ state: store.scope('fair-use'), bus, clock, log, knownAs: createKnownAs(persons) },
      settings: () => ({ limits: live.config.limits, timeZone: live.config.sessions.timeZone }),
    }),
    arrived(message) {
      for (const hear of contributed.arrivals()) hear(message);
    },
    tellOwner: tell,
    ownerWroteIn: wroteIn,
    fetchAttachments: (message) => attachments.begin(message),
  });
  const { notesOf } = kernel.use(MEMORY);
  const approvalsFor = async (message: InboundMessage) => (await kernel.origins(message)).approvals;
  add.command(...peopleCommands({ bus, people, mediumOf, notesOf, approvalsFor }));
  add.routes(
    ['GET /api/people', 'POST /api/people/strangers', 'POST /api/people/answers'],
    async () => {
      const { createPeopleDesk, peopleRoutes } = await import('./people-routes.ts');
      return peopleRoutes(createPeopleDesk({ people, questions, owner: DOOR_OWNER }));
    },
  );
  add.answers('stranger', createStrangerAnswers(people), 'person');
  add.answers('again', createAgainHandler({ bus, now: () => clock.now() }));
  add.task({
    name: 'questions',
    run: async (signal) => {
      await Promise.all([questions.run(signal), buttons.run(signal)]);
    },
  });
  add.task({
    name: 'decided elsewhere',
    run: (signal) => closeDecided({ ...people, bus, questions, clock }, signal),
  });
  kernel.provide(RECEIVER, receiver);
  kernel.provide(GROUP_TALK, groupTalk);
}
