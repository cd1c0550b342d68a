// Questions and approvals over a real store and a real toolbox, with time moved by hand. What an owner
// is shown is read from the outbox; a press is what a channel hands over.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { TurnMessage } from '../../src/agent/agent.ts';
import { runApproved } from '../../src/agent/execute.ts';
import {
  type AllowRules,
  createAllowRules,
  openAllowRuleRows,
} from '../../src/features/approvals/allow-rules.ts';
import { type Approvals, createApprovals } from '../../src/features/approvals/approvals.ts';
import { createAsks } from '../../src/features/approvals/asks.ts';
import { approvalsStage } from '../../src/features/approvals/index.ts';
import type { AdmittedRole } from '../../src/kernel/access/admission.ts';
import { NO_RIGHTS, type Rights, rightsOf } from '../../src/kernel/access/rights.ts';
import type { MessageBus } from '../../src/kernel/bus/bus.ts';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import { thumbed } from '../../src/kernel/intake/receive.ts';
import type { OutboundAttachment } from '../../src/kernel/message/attachment.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  nativeId,
  turnId,
} from '../../src/kernel/message/ids.ts';
import {
  type ChatRef,
  type InboundMessage,
  type OutboundMessage,
  sessionKeyOf,
} from '../../src/kernel/message/message.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import { openQuestionRows } from '../../src/kernel/questions/question-rows.ts';
import { createQuestions, type Questions } from '../../src/kernel/questions/questions.ts';
import { createRows } from '../../src/kernel/rows.ts';
import { supervise } from '../../src/lib/async.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import type { Tool, ToolContext } from '../../src/tools/tool.ts';
import { createToolbox } from '../../src/tools/toolbox.ts';
import { createMemoryMedia } from '../support/memory-media.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { questionEdge } from '../support/question-edge.ts';
import { person } from './people-rig.ts';

const CHANNEL = channelName('chat');
export const placeOf = (id: string): ChatRef => ({
  channel: CHANNEL,
  account: DEFAULT_ACCOUNT,
  chat: chatId(id),
});
export const OWNER = '1';
export const OWNER_RIGHTS = rightsOf({
  role: 'owner',
  place: 'direct',
  verified: 'verified',
  medium: 'chat',
});

type Opened = {
  readonly store: EmbeddedStore;
  readonly bus: MessageBus;
  readonly questions: Questions;
  readonly approvals: Approvals;
  /** The message as the agent gets it. */
  resolve(message: InboundMessage, signal: AbortSignal): Promise<TurnMessage>;
  readonly standing: AllowRules;
  readonly stop: AbortController;
  readonly running: Promise<void>;
};

/** How the platform names the text. */
const sentAs = ({ id }: Pick<OutboundMessage, 'id'>) => nativeId(`sent-${id}`);

export type Asked = {
  readonly from?: string;
  readonly ordinal?: number;
  readonly turn?: number;
  readonly isTainted?: boolean;
  readonly isTrusted?: true;
  /** Stands for what a tool says of the call; undefined: it is asked for each time. */
  readonly pattern?: string | undefined;
  readonly seal?: string;
  readonly session?: string;
  readonly whose?: string | undefined;
};

function callOf(command: string, options: Asked) {
  const { from = OWNER, ordinal = 0, turn: number = 1, isTainted = false } = options;
  const chat = placeOf(options.session ?? from);
  const session = sessionKeyOf(chat);
  const { pattern, whose } = { pattern: command, whose: `chat:${from}`, ...options };
  const call = {
    ...({ tool: 'runner', access: 'execute' } as const),
    arguments: JSON.stringify({ command }),
    rights: from === OWNER ? OWNER_RIGHTS : { ...NO_RIGHTS, execute: 'ask' as const },
    ...{ isTainted, ordinal },
    ...(options.isTrusted === undefined ? {} : { isTrusted: options.isTrusted }),
    ...(pattern === undefined ? {} : { pattern }),
    ...(options.seal === undefined ? {} : { seal: options.seal }),
  };
  const turn = {
    ...{ session, turnId: turnId(`${session}#${number}`), chat, person: OWNER_TURN },
    ...{
      replyTo: undefined,
      asker: `\`Name ${from}\` on chat`,
      isOwnerHere: from === OWNER,
      whose,
    },
  };
  return { call, turn };
}

export async function makeApprovalsRig() {
  const clock = createMovableClock();
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-approvals-'));
  const ran: string[] = [];
  const media = createMemoryMedia(clock);
  const uses: Readonly<Record<string, unknown>>[] = [];
  const edge: {
    hasButtons: boolean;
    /** What the owner may have done, who owners are, and for how long "always" holds. */
    rights: Rights;
    owners: readonly string[];
    days: number;
    run: (input: string) => Promise<string>;
  } = {
    hasButtons: true,
    rights: OWNER_RIGHTS,
    owners: [OWNER],
    days: 30,
    run: async (input) => `ran ${input}`,
  };
  const tool: Tool<{ command: string }> = {
    name: 'runner',
    description: 'Runs what it is told.',
    access: 'execute',
    input: z.object({ command: z.string().describe('What to run.') }),
    describe: ({ command }) => command,
    run({ command }, _context: ToolContext) {
      ran.push(command);
      return edge.run(command);
    },
  };
  const toolbox = createToolbox({
    tools: () => [tool as Tool],
    settings: () => ({ disabled: [], maxResultChars: 10_000, timeoutMs: 60_000 }),
    clock,
    log: silentLogger,
  });

  async function open(): Promise<Opened> {
    const store = await openEmbeddedStore({
      path: join(folder, 'state.db'),
      clock,
      log: silentLogger,
    });
    const limits = { maxPending: 10_000, maxPendingPerChat: 10 };
    const bus = createMessageBus({ store, clock, log: silentLogger, limits });
    const rows = createRows(store);
    const questions = createQuestions({
      ...{ rows: openQuestionRows(rows), bus, clock, log: silentLogger, randomBytes },
      handlers: () => ({ approval: approvals.handler }),
      ...questionEdge(bus, () => edge.hasButtons),
      media,
    });
    const standing = createAllowRules({
      rows: openAllowRuleRows(rows),
      ...{ clock, log: silentLogger, outsideChats: placeOf(OWNER), days: () => edge.days },
      personOf: async (whose) => (whose === 'phone:49' ? 'chat:1' : whose),
      timeZone: () => '',
      audit: { note: () => undefined, enter: async ({ fields }) => void uses.push(fields) },
      origins: async ({ sender }) => ({
        rights: edge.rights,
        isForeign: false,
        isOwnerHere: sender.kind === 'person' && edge.owners.includes(sender.id),
      }),
    });
    const approvals = createApprovals({
      ...{ bus, questions, standing, clock, log: silentLogger },
      ownerChat: async () => placeOf(OWNER),
      isAwaited: async () => true,
    });
    const stage = approvalsStage({
      ...{ approvals, questions, bus },
      asks: createAsks({ bus, questions, clock, log: silentLogger }),
      run: (call, signal) =>
        runApproved(
          { clock, toolbox: () => toolbox, settings: () => ({ workspace: folder }) as never },
          call,
          signal,
        ),
    });
    const resolve = (message: InboundMessage, signal: AbortSignal) =>
      stage.message(
        { seq: 1, message, rights: NO_RIGHTS, isForeign: false },
        { session: sessionKeyOf(message.chat), signal, show: () => undefined },
      );
    const stop = new AbortController();
    const restarts = { minMs: 500, maxMs: 500, stableMs: 60_000 };
    const running = supervise((signal) => questions.run(signal), {
      ...{ name: 'questions', signal: stop.signal, clock, log: silentLogger },
      ...{ ...restarts, onFailure: () => 'restart' },
    });
    return { store, bus, questions, approvals, resolve, standing, stop, running };
  }

  async function close({ bus, store, stop, running }: Opened) {
    stop.abort();
    await running;
    await bus[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  }

  let opened = await open();
  let asked = 0;
  const outbox: OutboundMessage[] = [];

  async function sent(): Promise<readonly OutboundMessage[]> {
    for (;;) {
      const { claimed } = await opened.store.claimDeliveries(CHANNEL, () => 1000);
      for (const delivery of claimed) {
        outbox.push(delivery.message);
        await opened.store.settle(delivery, {
          kind: 'sent',
          nativeIds: [sentAs(delivery.message)],
        });
      }
      if (claimed.length === 0) return outbox;
    }
  }

  function says(from: string, text: string, extra: Partial<InboundMessage> = {}): InboundMessage {
    return {
      id: messageId(`chat:${from}:${text}`),
      chat: placeOf(from),
      sender: person(from),
      addressing: 'direct',
      text,
      sentAt: clock.now(),
      receivedAt: clock.now(),
      ...extra,
    };
  }

  /** What a reaction to the newest question stands for. */
  async function thumb(from: string, emoji: string): Promise<string | undefined> {
    const question = await lastQuestion();
    if (question === undefined) throw new Error('nothing was asked');
    const reaction = { to: sentAs(question), emoji };
    return thumbed(says(from, '', { reaction }), opened);
  }

  const lastQuestion = async () => (await sent()).findLast(({ choices }) => choices !== undefined);
  const tokenOf = async (label: string) => {
    const token = (await lastQuestion())?.choices?.find((choice) => choice.label === label)?.token;
    if (token === undefined) throw new Error(`nothing to press is called ${label}`);
    return token;
  };

  return {
    clock,
    edge,
    /** What the tool was told to run, in order. */
    ran,
    sent,
    says,
    thumb,
    lastQuestion,
    tokenOf,
    /** What a file holds that was sent. */
    async fileText(file: OutboundAttachment | undefined) {
      const content = file && (await media.read(file.media));
      return content && Buffer.from(content).toString();
    },
    /** Messages that wait in the owner's chat. */
    async queue(count: number) {
      const messages = Array.from({ length: count }, (_, index) => says(OWNER, `busy ${index}`));
      await opened.bus.accept(messages.map((message) => ({ kind: 'queue', message })));
    },
    get questions() {
      return opened.questions;
    },
    get approvals() {
      return opened.approvals;
    },
    /** A turn in the chat asks to run a command; what the model is told. */
    async asks(command: string, options: Asked = {}) {
      const { ordinal = asked } = options;
      asked = Math.max(asked, ordinal) + 1;
      const { call, turn } = callOf(command, { ...options, ordinal });
      return (await opened.approvals.request(call, turn)).text;
    },
    /** Whether the same is allowed already, without anybody being asked. */
    allows(command: string, options: Asked = {}) {
      const { call, turn } = callOf(command, { turn: 9, ...options });
      return opened.approvals.allows(call, turn);
    },
    /** The audit of each use. */
    uses,
    get standing() {
      return opened.standing;
    },
    press: async (
      token: string,
      from: string = OWNER,
      extra: Partial<InboundMessage> = {},
      role: AdmittedRole = from === OWNER ? 'owner' : 'trusted',
    ) => {
      const message = says(from, 'Allow once', { press: token, ...extra });
      return (await opened.questions.press(message, role))?.words;
    },
    /** Takes up what waits in the queue as the dispatcher does: the texts the model gets. */
    async turns(signal = new AbortController().signal) {
      const { claimed } = await opened.store.claimTurns(() => 1000);
      const texts: { text: string; message: InboundMessage; isForeign: boolean }[] = [];
      for (const turn of claimed) {
        for (const { message } of turn.messages) {
          const resolved = await opened.resolve(message, signal);
          texts.push({ text: resolved.message.text, ...resolved });
        }
        const throughSeq = turn.messages.at(-1)?.seq ?? 0;
        await opened.store.endTurn(turn, { kind: 'done', throughSeq, outbound: [] });
      }
      return texts;
    },
    /** What waits, as it is stored. */
    async waiting() {
      const { claimed } = await opened.store.claimTurns(() => 1000);
      for (const turn of claimed) await opened.store.endTurn(turn, { kind: 'released' });
      return claimed.flatMap(({ messages }) => messages.map(({ message }) => message));
    },
    resolve: (message: InboundMessage, signal = new AbortController().signal) =>
      opened.resolve(message, signal),
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
