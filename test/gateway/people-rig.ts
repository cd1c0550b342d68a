// The way in over a real store: the gate, the strangers' book and the bus, with time moved by hand.
// What is queued is what the model would be asked; nothing else is.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ORDERS } from '../../src/boot.ts';
import { modelCommands } from '../../src/features/conversations/model-commands.ts';
import { stopCommands } from '../../src/features/conversations/stop-command.ts';
import { approvalCommands } from '../../src/features/letters/approval-commands.ts';
import { openBridgeRows } from '../../src/features/mail-bridge/bridge-summaries.ts';
import { createMailBridge } from '../../src/features/mail-bridge/index.ts';
import { createOwnerNotices, createUnknownSenderStep } from '../../src/features/people/index.ts';
import { peopleCommands } from '../../src/features/people/people-commands.ts';
import { Spending } from '../../src/features/spending/spending.ts';
import { createBudgetOwners } from '../../src/features/spending/spending-day.ts';
import {
  createSpendingService,
  spendingCommands,
  spentToday,
} from '../../src/features/spending/spending-service.ts';
import type { AdmissionPolicy, Role } from '../../src/kernel/access/admission.ts';
import type { MessageBus } from '../../src/kernel/bus/bus.ts';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import type { ClaimedDelivery, EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import { createCommands } from '../../src/kernel/commands/commands.ts';
import { type LimitsConfig, limitsSchema } from '../../src/kernel/config/limits.ts';
import { createRegistries } from '../../src/kernel/contributions.ts';
import { createFairUse, createJudge } from '../../src/kernel/intake/fair-use.ts';
import { createGroupBuffer, createGroupIntake } from '../../src/kernel/intake/group-intake.ts';
import { createReceiver, type Receiver } from '../../src/kernel/intake/receive.ts';
import {
  type ChannelName,
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  userId,
} from '../../src/kernel/message/ids.ts';
import type { ChatRef, InboundMessage, PersonSender } from '../../src/kernel/message/message.ts';
import { createOwnerChats } from '../../src/kernel/owners.ts';
import { createPeople, type People } from '../../src/kernel/people/people.ts';
import { createKnownAs } from '../../src/kernel/people/persons.ts';
import { createUnknownSenderAnswers } from '../../src/kernel/people/unknown-senders.ts';
import { openQuestionRows, settle } from '../../src/kernel/questions/question-rows.ts';
import { createQuestions, type Questions } from '../../src/kernel/questions/questions.ts';
import { createRows } from '../../src/kernel/rows.ts';
import { statusCommands } from '../../src/kernel/status.ts';
import { createSessionSettings } from '../../src/kernel/turns/origins.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock, type MovableClock } from '../support/movable-clock.ts';
import { NO_LOCAL_MODELS } from '../support/no-local-models.ts';
import { NO_SUBAGENTS } from '../support/no-subagents.ts';
import { NO_WORKFLOWS } from '../support/no-workflows.ts';
import { questionEdge } from '../support/question-edge.ts';

export const OWNER = '1';

export type PeopleRig = {
  readonly clock: MovableClock;
  readonly people: People;
  readonly bus: MessageBus;
  readonly questions: Questions;
  /** The chat of a person of this id. */
  chat(id: string): ChatRef;
  /** Hands a message in; its id names sender and text, so that the same one again is a repeat. */
  say(from: string | PersonSender, text: string, extra?: Partial<InboundMessage>): Promise<void>;
  /** Hands messages in that came at once. */
  sayTogether(from: string, ...texts: readonly string[]): Promise<void>;
  /** What `say` hands over. */
  message(from: string, text: string): InboundMessage;
  /** Texts that wait for the model, oldest first. */
  queued(): Promise<readonly string[]>;
  /** What was sent to the chat of this id. */
  sentTo(chat: string, channel?: string): Promise<readonly string[]>;
  readonly store: EmbeddedStore;
  /** Takes what is due on the channel, as its courier would. */
  claimed(channel: ChannelName): Promise<readonly ClaimedDelivery[]>;
  /** What the owner was told, on whichever door. */
  readonly told: readonly string[];
  policy: Omit<AdmissionPolicy, 'role'>;
  limits: LimitsConfig;
  /** The process dies and another one opens the same store. */
  restart(): Promise<void>;
} & AsyncDisposable;

export const person = (id: string, extra: Partial<PersonSender> = {}): PersonSender => ({
  kind: 'person',
  id: userId(id),
  name: `Name ${id}`,
  verified: 'verified',
  ...extra,
});

const chatOf = (id: string): ChatRef => ({
  channel: channelName('chat'),
  account: DEFAULT_ACCOUNT,
  chat: chatId(id),
});

type Opened = {
  readonly store: EmbeddedStore;
  readonly bus: MessageBus;
  readonly people: People;
  readonly questions: Questions;
  readonly receiver: Receiver;
};

export async function makePeopleRig(
  policy: Partial<AdmissionPolicy> = {},
  roles: Readonly<Record<string, Role>> = { [OWNER]: 'owner' },
): Promise<PeopleRig> {
  const clock = createMovableClock();
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-people-'));
  const path = join(folder, 'state.db');
  const rig = { allowFrom: [], owners: [], acceptUnverified: false, strangers: 'silent' } as const;
  let current: Omit<AdmissionPolicy, 'role'> = { ...rig, ...policy };
  let fairLimits = limitsSchema.parse({});

  async function open(): Promise<Opened> {
    const store = await openEmbeddedStore({ path, clock, log: silentLogger });
    const limits = { maxPending: 10_000, maxPendingPerChat: 1000 };
    const bus = createMessageBus({ store, clock, log: silentLogger, limits });
    const state = store.scope('people');
    const rows = createRows(store);
    const questionRows = openQuestionRows(rows);
    const people = createPeople({
      settled: (id, words) => settle(questionRows, id, words),
      rows,
      state,
      clock,
      randomBytes,
      localChannels: [],
      policy: () => current,
      async release(messages) {
        await bus.accept(messages.map((message) => ({ kind: 'queue', message })));
      },
    });
    const { pairing, persons, strangers, decisions } = people;
    const judge = createJudge({ persons, policy: () => current });
    const door = createOwnerChats({ state, pairing });
    const noticeChat = () => door.notices(() => true);
    const questions = createQuestions({
      ...{ rows: questionRows, bus, clock, randomBytes, log: silentLogger },
      handlers: () => ({ stranger: createUnknownSenderAnswers(people) }),
      ...questionEdge(bus, () => false),
    });
    const announce = createOwnerNotices({ rows, bus, questions, strangers, clock, noticeChat });
    const now = () => clock.now();
    const log = silentLogger;
    const knock = createUnknownSenderStep({
      ...{ strangers, now, randomBytes, bus, decisions, judge, announce, log },
    });
    const buffer = createGroupBuffer(rows, clock);
    const groups = createGroupIntake({ buffer, tellOwner: () => undefined });
    const knownAs = createKnownAs(people.persons);
    const ownerOf = createBudgetOwners(people.persons);
    const fairUse = createFairUse({
      ...{ state: store.scope('fair-use'), bus, clock, log, knownAs },
      settings: () => ({ limits: fairLimits, timeZone: 'UTC' }),
    });
    const spending = new Spending({
      ...{ state: store.scope('spending'), clock, log, knownAs, ownerOf },
      notes: {
        spent: () => undefined,
        cheaper: () => undefined,
        usedUp: () => undefined,
        unpriced: () => undefined,
      },
      settings: () => ({ limits: fairLimits, prices: [], timeZone: 'UTC' }),
    });
    const bridge = createMailBridge({
      rows: openBridgeRows(createRows(store)),
      ...{ bus, clock, mode: () => 'off', changed: () => undefined },
      timeZoneIn: async () => 'UTC',
    });
    const { add, contributed } = createRegistries();
    const service = createSpendingService(
      spending,
      () => ({ limits: fairLimits, prices: [] }),
      ownerOf,
      {
        load: async () => [],
        turn: async () => [],
      },
      { bus, metrics: () => '' },
    );
    const mediumOf = (channel: string) => (channel === 'mail' ? 'mail' : 'chat');
    const jobs = { atWork: async () => [], stop: async () => false };
    const chosen = {
      settings: createSessionSettings(store.scope('session-settings')),
      models: () => ({ defaultModel: 'test/model', resolve: () => Promise.reject() }) as never,
      turnDefaults: () => ({ thinkingBudget: 0, queueMode: 'steer' }) as const,
    };
    add.status({ lines: async (by) => [`Today: ${await spentToday(by, service)}`] });
    add.command(
      ...peopleCommands({
        bus,
        people,
        mediumOf,
        notesOf: async () => '',
        approvalsFor: async () => undefined,
      }),
      ...spendingCommands(service),
      ...modelCommands({ ...chosen, local: NO_LOCAL_MODELS }),
      ...statusCommands(contributed.status, clock),
      ...stopCommands({ bus, subagentService: NO_SUBAGENTS, workflows: NO_WORKFLOWS, jobs }),
      ...approvalCommands({
        // What nobody foresaw.
        questions: {
          open: () => Promise.reject(new Error('broken')),
          askAgain: questions.askAgain,
        },
        standing: { list: async () => [], takeBack: async () => 0 },
        mediumOf,
        ...{ persons: people.persons, peopleRows: people.peopleRows },
      }),
    );
    const commands = createCommands({ contributed, audit: { note: () => undefined } });
    const receiver = createReceiver({
      ...{
        bus,
        pairing,
        judge,
        groups,
        fairUse,
        questions,
        order: ORDERS.intake,
        steps: [
          knock,
          { name: 'mail bridge', decide: (message, verdict) => bridge.take(message, verdict) },
        ],
        log,
        ownerWroteIn: door.wroteIn,
      },
      fetchAttachments: () => undefined,
      arrived: () => undefined,
      tellOwner: (text) => void told.push(text),
      people,
      commands,
    });
    return { store, bus, people, questions, receiver };
  }

  async function close({ bus, store }: Opened) {
    await bus[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  }

  function messageOf(from: string | PersonSender, text: string): InboundMessage {
    const sender = typeof from === 'string' ? person(from) : from;
    return {
      id: messageId(`chat:default:${sender.id}:${text}`),
      chat: chatOf(sender.id),
      sender,
      addressing: 'direct',
      text,
      sentAt: clock.now(),
      receivedAt: clock.now(),
    };
  }

  const told: string[] = [];
  let opened = await open();
  const everQueued: string[] = [];
  const sent = new Map<string, readonly string[]>();
  for (const [id, role] of Object.entries(roles)) {
    if (role === 'blocked') await opened.people.pairing.block({ ...at(id), ids: [id] });
    else await opened.people.pairing.approve({ ...at(id), userId: id }, role);
  }

  return {
    clock,
    told,
    get people() {
      return opened.people;
    },
    get store() {
      return opened.store;
    },
    claimed: async (channel) => (await opened.store.claimDeliveries(channel, () => 1000)).claimed,
    get questions() {
      return opened.questions;
    },
    chat: chatOf,
    get bus() {
      return opened.bus;
    },
    get policy() {
      return current;
    },
    set policy(next) {
      current = next;
    },
    get limits() {
      return fairLimits;
    },
    set limits(next) {
      fairLimits = next;
    },
    message: messageOf,
    async say(from, text, extra = {}) {
      const message = { ...messageOf(from, text), ...extra };
      await opened.receiver.receive([{ kind: 'queue', message }]);
    },
    async sayTogether(from, ...texts) {
      const messages = texts.map((text) => messageOf(from, text));
      await opened.receiver.receive(messages.map((message) => ({ kind: 'queue', message })));
    },
    async queued() {
      const { claimed } = await opened.store.claimTurns(() => 1000);
      for (const turn of claimed) {
        everQueued.push(...turn.messages.map(({ message }) => message.text));
        const throughSeq = turn.messages.at(-1)?.seq ?? 0;
        await opened.store.endTurn(turn, { kind: 'done', throughSeq, outbound: [] });
      }
      return everQueued;
    },
    async sentTo(chat, channel = 'chat') {
      for (;;) {
        const { claimed } = await opened.store.claimDeliveries(channelName(channel), () => 1000);
        for (const delivery of claimed) {
          const { chat: to, markdown } = delivery.message;
          const place = `${channel}:${to.chat}`;
          sent.set(place, [...(sent.get(place) ?? []), markdown]);
          await opened.store.settle(delivery, { kind: 'sent', nativeIds: [] });
        }
        if (claimed.length === 0) return sent.get(`${channel}:${chat}`) ?? [];
      }
    },
    async restart() {
      await close(opened);
      opened = await open();
    },
    async [Symbol.asyncDispose]() {
      await close(opened);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const at = (id: string) => ({ channel: 'chat', name: `Name ${id}` });
