// A door with a host in memory, to be stopped and started again over the same state.

import type { Channel } from '../../../src/channels/channel.ts';
import type { LocalChannel, LocalEvent } from '../../../src/channels/local-channel.ts';
import { createLocalChannel } from '../../../src/channels/web/durable-channel.ts';
import type { SendContext } from '../../../src/kernel/bus/bus.ts';
import {
  callId,
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  turnId,
} from '../../../src/kernel/message/ids.ts';
import type { ChatRef, LiveUpdate, OutboundMessage } from '../../../src/kernel/message/message.ts';
import { createMemoryHost, type MemoryHost } from '../../support/memory-host.ts';
import { createMovableClock, type MovableClock } from '../../support/movable-clock.ts';

export const chatRef = (chat: string): ChatRef => ({
  channel: channelName('web'),
  account: DEFAULT_ACCOUNT,
  chat: chatId(chat),
});

export const answer = (chat: string, id: string, markdown: string): OutboundMessage => ({
  id: messageId(id),
  chat: chatRef(chat),
  markdown,
});

export const picture = (
  chat: string,
  turn: string,
  markdown: string,
  rest: Partial<LiveUpdate> = {},
): LiveUpdate => ({
  turnId: turnId(turn),
  chat: chatRef(chat),
  phase: 'writing',
  markdown,
  tools: [],
  ...rest,
});

export const runningTool = (name: string) =>
  ({ callId: callId(`call-${name}`), name, detail: '', status: 'running' }) as const;

export const sendContext = (signal = new AbortController().signal): SendContext => ({
  signal,
  attempt: 1,
  textAt: 0,
  sentParts: [],
  repeatsUnknown: false,
  requestBegins: async () => undefined,
  partSent: async () => undefined,
});

export type LocalChannelRig = AsyncDisposable & {
  readonly door: Channel & LocalChannel;
  readonly host: MemoryHost;
  readonly clock: MovableClock;
  /** Takes nothing in any more; delivering goes on. */
  stopIntake(): Promise<void>;
};

export function makeLocalChannel(clock = createMovableClock()): Channel & LocalChannel {
  return createLocalChannel({
    name: channelName('web'),
    coalesces: true,
    choices: 'buttons',
    maxFileBytes: () => 1_000_000,
    clock,
  });
}

export async function openLocalChannel(host?: MemoryHost): Promise<LocalChannelRig> {
  const clock = createMovableClock();
  const owned = host ?? createMemoryHost(clock);
  const door = makeLocalChannel(clock);
  const intake = new AbortController();
  const running = door.run(owned, intake.signal);
  // Opens once it has looked through its state; a failure to open shows itself here.
  await Promise.race([door.chats(1), running]);
  const stopIntake = async () => {
    intake.abort();
    await running;
  };
  return { door, host: owned, clock, stopIntake, [Symbol.asyncDispose]: stopIntake };
}

/** Reads until `isLast` says so or the events end. */
export async function readEvents(
  events: AsyncIterable<LocalEvent>,
  isLast: (event: LocalEvent, all: readonly LocalEvent[]) => boolean,
): Promise<readonly LocalEvent[]> {
  const seen: LocalEvent[] = [];
  for await (const event of events) {
    seen.push(event);
    if (isLast(event, seen)) break;
  }
  return seen;
}

/** An iterator that can be read by hand and then on by a loop. */
export async function* iterate<T>(items: AsyncIterable<T>): AsyncGenerator<T, void, void> {
  yield* items;
}

export const textOf = (event: LocalEvent) =>
  event.type === 'said' ? event.text : `${event.update.phase}:${event.update.markdown}`;
