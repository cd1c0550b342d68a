// A real Lark channel against the simulated Lark, with a host in memory.

import { expect } from 'vitest';
import type { Channel } from '../../../src/channels/channel.ts';
import { createLarkChannel } from '../../../src/channels/lark/lark.ts';
import type { LarkConfig } from '../../../src/channels/lark/settings.ts';
import type { KeyValueStore } from '../../../src/kernel/bus/store/store.ts';
import { chatId, DEFAULT_ACCOUNT, messageId } from '../../../src/kernel/message/ids.ts';
import type { ChatRef, OutboundMessage } from '../../../src/kernel/message/message.ts';
import { type Clock, systemClock } from '../../../src/lib/time/clock.ts';
import type { LarkChat, LarkServer } from '../../support/lark-server/contract.ts';
import { startLarkServer } from '../../support/lark-server/server.ts';
import { createMemoryHost, type MemoryHost } from '../../support/memory-host.ts';

export type Rig = AsyncDisposable & {
  readonly lark: LarkServer;
  readonly host: MemoryHost;
  readonly channel: Channel;
  start(config?: Partial<LarkConfig>): void;
  /** Resolves when the long connection stands. */
  connected(): Promise<void>;
  stop(): Promise<void>;
  /** What `run` rejected with. */
  readonly failure: Promise<unknown>;
};

export async function startRig(
  config: Partial<LarkConfig> = {},
  clock: Clock = systemClock,
  state?: KeyValueStore,
): Promise<Rig> {
  const lark = await startLarkServer();
  const host = createMemoryHost(clock, state);
  const make = (changed: Partial<LarkConfig> = {}) => {
    const defaults: LarkConfig = {
      enabled: true,
      appId: lark.appId,
      appSecret: lark.appSecret,
      domain: lark.url,
      proxy: '',
      allowFrom: [],
      strangers: 'silent',
      streaming: true,
      quoteReplies: false,
      ackReaction: '',
      groups: [],
      groupAllow: 'allowlisted',
      groupNames: [],
    };
    return createLarkChannel({ ...defaults, ...config, ...changed }, { clock, random: () => 0 });
  };
  let channel = make();
  let controller = new AbortController();
  let running: Promise<void> = Promise.resolve();
  return {
    lark,
    host,
    get channel() {
      return channel;
    },
    get failure() {
      return running.then(
        () => undefined,
        (error: unknown) => error,
      );
    },
    start(changed) {
      controller = new AbortController();
      channel = make(changed);
      running = channel.run(host, controller.signal);
      running.catch(() => undefined);
    },
    connected: async () => void (await lark.until(() => lark.connections > 0)),
    async stop() {
      controller.abort();
      await running;
    },
    async [Symbol.asyncDispose]() {
      controller.abort();
      await running.catch(() => undefined);
      await lark[Symbol.asyncDispose]();
      expect(lark.violations).toEqual([]);
    },
  };
}

export const refOf = (chat: LarkChat): ChatRef => ({
  channel: 'lark' as ChatRef['channel'],
  account: DEFAULT_ACCOUNT,
  chat: chatId(chat.id),
});

export const answer = (
  chat: ChatRef,
  markdown: string,
  rest: Partial<OutboundMessage> = {},
): OutboundMessage => ({ id: messageId('turn/0'), chat, markdown, ...rest });

/** What the person sees of the bot in a chat, in order. */
export const textsSeen = (lark: LarkServer, chat: LarkChat): readonly string[] =>
  lark
    .seen(chat)
    .filter(({ type }) => type === 'interactive')
    .map((message) => lark.textOf(message));
