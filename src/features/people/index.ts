// Installs the intake: the gate, with the steps for groups, unknown senders and message limits.

import { randomBytes } from 'node:crypto';
import { CHANNELS } from '../../channels/index.ts';
import { LOCAL_OWNER } from '../../channels/local-channel.ts';
import type { InboundEntry, MessageBus } from '../../kernel/bus/bus.ts';
import { RECEIVER } from '../../kernel/delivery/manager.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { ATTACHMENTS } from '../../kernel/intake/attachments.ts';
import { createFairUse } from '../../kernel/intake/fair-use.ts';
import type { IntakeStep } from '../../kernel/intake/group-intake.ts';
import {
  createGroupBuffer,
  createGroupIntake,
  type GroupBuffer,
} from '../../kernel/intake/group-intake.ts';
import { createReceiver } from '../../kernel/intake/receive.ts';
import { type AccountName, accountName, messageId } from '../../kernel/message/ids.ts';
import {
  type ChatRef,
  type InboundMessage,
  idsOf,
  type PersonSender,
} from '../../kernel/message/message.ts';
import {
  codeNotice,
  MANY_UNKNOWN_SENDERS_NOTICE,
  unknownSenderNotice,
} from '../../kernel/message/untrusted.ts';
import { PEOPLE_SCOPE } from '../../kernel/people/people-rows.ts';
import { createKnownAs } from '../../kernel/people/persons.ts';
import {
  createUnknownSenderAnswers,
  type Decisions,
  issueUnknownSenderCode,
  UNKNOWN_SENDER_CHOICES,
  UNKNOWN_SENDER_CODE_MINUTES,
  UNKNOWN_SENDER_LIFETIME_MS,
  UNKNOWN_SENDER_SUBJECT,
  type UnknownSender,
  type UnknownSenderCodesDeps,
  type UnknownSenders,
  unknownSenderId,
  unknownSenderQuestion,
} from '../../kernel/people/unknown-senders.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import { jsonRows } from '../../kernel/rows.ts';
import { createAgainHandler } from '../../kernel/turns/edits.ts';
import { createLanes } from '../../lib/async.ts';
import { number, rowShape } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { MEMORY } from '../memory/index.ts';
import { peopleCommands } from './people-commands.ts';

export { setApprovals, setGeneralApprovals, withPerson } from './person-commands.ts';

/** Group messages that are not addressed to the agent. */
export const GROUP_TALK = port<GroupBuffer>('group talk');

export function install(kernel: Kernel): void {
  const { live, store, rows, bus, clock, log, people, judge, commands, questions, contributed } =
    kernel;
  const { owners, mediumOf, buttons, add } = kernel;
  const { audit } = kernel.measuring;
  const { tell, noticeChat, wroteIn } = owners;
  const { pairing, persons, strangers, decisions } = people;
  const groupTalk = createGroupBuffer(rows, clock);
  const announce = createOwnerNotices({ rows, bus, questions, strangers, clock, noticeChat });
  const codes = { strangers, now: () => clock.now(), randomBytes };
  const attachments = kernel.use(ATTACHMENTS);
  add.intake(createUnknownSenderStep({ ...codes, bus, decisions, judge, announce, log }));
  const receiver = createReceiver({
    ...{ bus, people, pairing, commands, log, judge, questions },
    order: kernel.orders.intake,
    steps: contributed.intake(),
    groups: createGroupIntake({ buffer: groupTalk, tellOwner: tell }),
    fairUse: createFairUse({
      ...{ state: store.scope('fair-use'), bus, clock, log, knownAs: createKnownAs(persons) },
      isShared: store.shared !== undefined,
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
    [
      'GET /api/v1/people',
      'GET /api/v1/people/events',
      'POST /api/v1/people/unknown-senders',
      'POST /api/v1/people/admissions',
      'POST /api/v1/people/answers',
      'POST /api/v1/people/approvals',
      'POST /api/v1/people/:id',
      'POST /api/v1/people/:id/unlink',
      'POST /api/v1/people/:id/merge',
    ],
    async () => {
      const { peopleRoutes } = await import('./people-routes.ts');
      const configured = () => live.config.tools;
      return peopleRoutes({ people, questions, configured, owner: LOCAL_OWNER, audit, clock });
    },
  );
  add.answers('stranger', createUnknownSenderAnswers(people), 'person');
  add.answers('again', createAgainHandler({ bus, now: () => clock.now() }));
  add.task({
    name: 'questions',
    isOnce: true,
    run: async (signal) => {
      await Promise.all([questions.run(signal), questions.watch(signal), buttons.run(signal)]);
    },
  });
  kernel.provide(RECEIVER, receiver);
  kernel.provide(GROUP_TALK, groupTalk);
}

// The intake step for unknown senders: keeps the message and asks the owner, or sends a pairing
// code. All of it is stored before the channel acknowledges.

type UnknownSenderStepDeps = UnknownSenderCodesDeps &
  Pick<Kernel, 'judge' | 'log'> & {
    readonly bus: Pick<MessageBus, 'send' | 'trace'>;
    readonly decisions: Decisions;
    readonly announce: AnnounceUnknownSender;
  };

/** Records the message under another id; its own id stays free for a later approval. */
export function createUnknownSenderStep(deps: UnknownSenderStepDeps): IntakeStep {
  const { bus, strangers, decisions, judge, announce, log } = deps;

  async function giveCode(unknownSender: UnknownSender, message: InboundMessage) {
    const code = await issueUnknownSenderCode(unknownSender, deps);
    if (code === undefined) return;
    await bus.send({
      id: messageId(`${message.id}/reply`),
      chat: message.chat,
      markdown: codeNotice(code, UNKNOWN_SENDER_CODE_MINUTES),
      replyTo: message.id,
    });
  }

  async function recorded(
    message: InboundMessage,
    sender: PersonSender,
    policy: 'silent' | 'pairing',
  ): Promise<InboundEntry> {
    const { channel } = message.chat;
    const gate = t`held: sender not on the allow list`;
    // It was answered before, and the platform redelivers it.
    if ((await bus.trace(message.id)) !== undefined) return { kind: 'record', message, gate };
    const unknownSender = await strangers.hold(message, sender);
    log.info('message of an unknown sender', {
      channel,
      messageId: message.id,
      kept: unknownSender !== undefined,
    });
    const entry: InboundEntry = {
      kind: 'record',
      message: { ...message, id: messageId(`${message.id}/held`) },
      gate,
    };
    if (unknownSender === undefined)
      return { ...entry, gate: 'too many unknown senders are waiting' };
    // A decision made elsewhere in the meantime did not cover this message.
    if ((await judge(message)).kind === 'admit') {
      await decisions.answerHeld(channel, idsOf(sender));
    } else if (policy === 'pairing') await giveCode(unknownSender, message);
    else await announce(unknownSender, accountName(message.chat));
    return entry;
  }

  return {
    name: 'unknown sender',
    decide: async (message, verdict) =>
      verdict.kind === 'knock'
        ? { entry: await recorded(message, verdict.sender, verdict.policy) }
        : undefined,
  };
}

// Sends the owner a notice about an unknown sender, on the account that got the message if the
// owner is reached there: once per sender, up to a number per hour, then one line for all others.
// The count is stored, so that a restart does not reset it. The decision can be made below the
// notice.

const MAX_NOTICES = 10;
const WINDOW_MS = 3_600_000;

type OwnerNoticesDeps = Pick<Kernel, 'rows' | 'clock'> & {
  readonly bus: Pick<MessageBus, 'send'>;
  readonly questions: Pick<Questions, 'ask'>;
  readonly strangers: UnknownSenders;
  noticeChat(about: AccountName): Promise<ChatRef>;
};

/** `sent`: notices since then, including the one for all others. */
type Count = { readonly since: number; readonly sent: number };

const COUNT = rowShape<Count>({ since: number, sent: number });

/** `at`: the account that got the message. */
type AnnounceUnknownSender = (unknownSender: UnknownSender, at: AccountName) => Promise<void>;

export function createOwnerNotices(deps: OwnerNoticesDeps): AnnounceUnknownSender {
  const { rows, bus, questions, strangers, clock, noticeChat } = deps;
  const counts = rows({ ...jsonRows(COUNT), scope: PEOPLE_SCOPE, prefix: 'owner-notices' });
  const lanes = createLanes();

  async function announce(unknownSender: UnknownSender, at: AccountName) {
    const fresh: Count = { since: clock.now(), sent: 0 };
    const found = (await counts.get('')) ?? fresh;
    const { since, sent } = clock.now() - found.since < WINDOW_MS ? found : fresh;
    if (unknownSender.announced || sent > MAX_NOTICES) return;
    const isLast = sent === MAX_NOTICES;
    const chat = await noticeChat(at);
    if (isLast) {
      const id = messageId(`strangers/${since}`);
      await bus.send({ id, chat, markdown: MANY_UNKNOWN_SENDERS_NOTICE });
    } else await ask(unknownSender, chat);
    await counts.change('', () => ({ since, sent: sent + 1 }));
    if (!isLast) await strangers.note(unknownSender, { announced: true });
  }

  async function ask(unknownSender: UnknownSender, chat: ChatRef) {
    const { channel } = unknownSender;
    const label = CHANNELS.find(({ name }) => name === channel)?.label ?? channel;
    await questions.ask({
      id: unknownSenderQuestion(unknownSender),
      chat,
      markdown: unknownSenderNotice(unknownSender, label),
      choices: UNKNOWN_SENDER_CHOICES,
      approvers: 'owners',
      subject: `${UNKNOWN_SENDER_SUBJECT}:${unknownSenderId(unknownSender)}`,
      expiresInMs: UNKNOWN_SENDER_LIFETIME_MS,
    });
  }

  return (unknownSender, at) => lanes.run('notices', () => announce(unknownSender, at));
}
