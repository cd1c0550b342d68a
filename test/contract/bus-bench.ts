// What the bus contract is run with: a store on which processes can be opened one after the other
// or, to play a process that died or froze while it held something, side by side.

import type {
  Courier,
  InboundEntry,
  MessageBus,
  Receipt,
  SendContext,
  Turn,
  TurnHandler,
  TurnResult,
  WorkOptions,
} from '../../src/kernel/bus/bus.ts';
import {
  accountId,
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  nativeId,
  type SessionKey,
  userId,
} from '../../src/kernel/message/ids.ts';
import {
  type ChatRef,
  type InboundMessage,
  type OutboundDraft,
  type OutboundMessage,
  sessionKeyOf,
} from '../../src/kernel/message/message.ts';
import type { MovableClock } from '../support/movable-clock.ts';

export interface BusBench extends AsyncDisposable {
  readonly clock: MovableClock;
  /** A bus on the bench's one store, as a process of its own would have it. */
  open(): Promise<MessageBus>;
  /** From now on the bus writes nothing and hears nothing, like one whose process died. */
  kill(bus: MessageBus): Promise<void>;
}

export type MakeBusBench = (limits?: {
  readonly maxPendingPerChat?: number;
  readonly maxPending?: number;
}) => Promise<BusBench>;

/** Several that live side by side are for other tests: test/bus/wake-ups.test.ts and those of the program. */
export type BusProcess = 'the only one' | 'of several';

export const CHANNEL = channelName('pigeon');

export function chat(name: string): ChatRef {
  return { channel: CHANNEL, account: DEFAULT_ACCOUNT, chat: chatId(name) };
}

export function session(name: string): SessionKey {
  return sessionKeyOf(chat(name));
}

export function message(name: string, native: string, text = native): InboundMessage {
  return {
    id: messageId(`${CHANNEL}:${accountId('default')}:${native}`),
    chat: chat(name),
    sender: { kind: 'person', id: userId('ada'), verified: 'verified' },
    addressing: 'direct',
    text,
    sentAt: 0,
    receivedAt: 0,
  };
}

export function queued(name: string, native: string, text?: string): InboundEntry {
  return { kind: 'queue', message: message(name, native, text) };
}

export function answer(name: string, markdown: string): OutboundDraft {
  return { chat: chat(name), markdown };
}

export function outbound(name: string, id: string, markdown = id): OutboundMessage {
  return { ...answer(name, markdown), id: messageId(id) };
}

/** What the disk of a busy machine may take. */
const WAIT_MS = 45_000;

/** Moves no time, only lets what is under way come to rest, until the condition holds. */
export async function eventually(clock: MovableClock, condition: () => boolean): Promise<void> {
  const late = performance.now() + WAIT_MS;
  while (performance.now() < late) {
    if (condition()) return;
    await clock.advance(0);
  }
  throw new Error(`this never became true: ${condition.toString()}`);
}

/**
 * Moves time on, second by second, until the condition holds: for what another process wrote, which
 * is noticed at the next check after its notification arrived.
 */
export async function inTime(clock: MovableClock, condition: () => boolean): Promise<void> {
  const late = performance.now() + WAIT_MS;
  while (performance.now() < late) {
    if (condition()) return;
    await clock.advance(1000);
  }
  throw new Error(`this never became true: ${condition.toString()}`);
}

/** Waits until the turn is told to end, as a handler does that is busy with a model call. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort);
  });
}

/** A promise that ends only when the test says so, as a process that hangs or is dead. */
export const never = new Promise<never>(() => undefined);

export type Sent = { readonly message: OutboundMessage; readonly context: SendContext };

/** A courier that notes each try and answers as told; sends well where nothing was told. */
export function scriptedCourier(
  policy: Partial<
    Pick<Courier, 'onUnknown' | 'lifetimeMs' | 'reconcile' | 'announcesRequests' | 'readiness'>
  > = {},
  answerTry: (sent: Sent, nth: number) => Promise<Receipt> | Receipt | undefined = () => undefined,
): Courier & { readonly sent: Sent[]; readonly texts: () => string[] } {
  const sent: Sent[] = [];
  return {
    account: CHANNEL,
    onUnknown: 'hold',
    lifetimeMs: 24 * 3_600_000,
    ...policy,
    sent,
    texts: () => sent.map(({ message: { markdown } }) => markdown),
    async send(toSend, context) {
      const one = { message: toSend, context };
      sent.push(one);
      const receipt = await answerTry(one, sent.length);
      return receipt ?? { nativeIds: [nativeId(`n${sent.length}`)] };
    },
  };
}

export type Working = {
  /** Aborts and waits until the handlers are over. */
  stop(): Promise<void>;
  /** Aborts without waiting. */
  abort(): void;
  readonly over: Promise<void>;
};

export function startWork(
  bus: MessageBus,
  handler: TurnHandler,
  options: Partial<Omit<WorkOptions, 'signal'>> = {},
): Working {
  const controller = new AbortController();
  const over = bus.work(handler, {
    signal: controller.signal,
    maxOpenTurns: () => 10,
    maxAttempts: 3,
    onPoison: (turn) => [{ chat: turn.chat, markdown: 'set aside' }],
    ...options,
  });
  return workingOn(over, controller);
}

export function startDelivery(bus: MessageBus, courier: Courier, concurrency = 10): Working {
  const controller = new AbortController();
  const over = bus.deliver(courier, { signal: controller.signal, concurrency });
  return workingOn(over, controller);
}

function workingOn(over: Promise<void>, controller: AbortController): Working {
  return {
    over,
    abort: () => controller.abort(),
    stop: async () => {
      controller.abort();
      await over;
    },
  };
}

/** A handler that answers each turn with the texts it was given and notes them. */
export function echo(): { readonly turns: string[][]; readonly handle: TurnHandler } {
  const turns: string[][] = [];
  return {
    turns,
    async handle(turn) {
      const texts = turn.messages.map((queued) => queued.message.text);
      turns.push(texts);
      return resultOf(turn, `re: ${texts.join(', ')}`);
    },
  };
}

export function resultOf(turn: Turn, ...answers: readonly string[]): TurnResult {
  const last = turn.messages.at(-1) ?? turn.messages[0];
  return {
    throughSeq: last.seq,
    outbound: answers.map((markdown) => ({ chat: turn.chat, markdown })),
  };
}
