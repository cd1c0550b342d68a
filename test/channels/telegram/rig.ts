// A real Telegram channel against the simulated Bot API, with a host in memory.

import { expect } from 'vitest';
import type { Channel } from '../../../src/channels/channel.ts';
import type { TelegramConfig } from '../../../src/channels/telegram/settings.ts';
import { createTelegramChannel } from '../../../src/channels/telegram/telegram.ts';
import type { KeyValueStore } from '../../../src/kernel/bus/store/store.ts';
import { chatId, DEFAULT_ACCOUNT, messageId } from '../../../src/kernel/message/ids.ts';
import type { ChatRef, OutboundMessage } from '../../../src/kernel/message/message.ts';
import { type Clock, systemClock } from '../../../src/lib/time/clock.ts';
import { type BotApi, type BotApiOptions, startBotApi } from '../../support/bot-api.ts';
import { createMemoryHost, type MemoryHost } from '../../support/memory-host.ts';

export const ALICE = 777;

export type Rig = AsyncDisposable & {
  readonly api: BotApi;
  readonly host: MemoryHost;
  readonly clock: Clock;
  readonly channel: Channel;
  /** Starts a channel that goes on where the last one stopped. */
  start(config?: Partial<TelegramConfig>): void;
  /** Stops it as a shutdown does; rejects with what `run` rejected with. */
  stop(): Promise<void>;
  /** What `run` rejected with. */
  readonly failure: Promise<unknown>;
  /** Violations the test meant to cause; any other fails it. */
  readonly expectedViolations: string[];
};

export async function startRig(
  options: {
    readonly clock?: Clock;
    readonly api?: BotApiOptions;
    readonly apiRoot?: string;
    readonly state?: KeyValueStore | undefined;
  } = {},
): Promise<Rig> {
  const api = await startBotApi({ maxPollMs: 2000, ...options.api });
  const clock = options.clock ?? systemClock;
  const host = createMemoryHost(clock, options.state);
  const expectedViolations: string[] = [];
  let channel = make({});
  let controller = new AbortController();
  let running: Promise<void> = Promise.resolve();

  function make(config: Partial<TelegramConfig>): Channel {
    const defaults: TelegramConfig = {
      enabled: true,
      token: api.token,
      apiRoot: options.apiRoot ?? api.apiRoot,
      proxy: '',
      allowFrom: [],
      strangers: 'silent',
      streaming: true,
      quoteReplies: false,
      ackReaction: '',
      groups: [],
      groupAllow: 'allowlisted',
      groupNames: [],
      groupSenderChats: [],
    };
    return createTelegramChannel({ ...defaults, ...config }, { clock, random: () => 0 });
  }

  const rig: Rig = {
    api,
    host,
    clock,
    expectedViolations,
    get channel() {
      return channel;
    },
    get failure() {
      return running.then(
        () => undefined,
        (error: unknown) => error,
      );
    },
    start(config = {}) {
      controller = new AbortController();
      channel = make(config);
      running = channel.run(host, controller.signal);
      running.catch(() => undefined);
    },
    async stop() {
      controller.abort();
      await running;
    },
    async [Symbol.asyncDispose]() {
      controller.abort();
      await running.catch(() => undefined);
      await api[Symbol.asyncDispose]();
      expect(api.violations).toEqual(expectedViolations);
    },
  };
  return rig;
}

export const chatOf = (chat: number): ChatRef => ({
  channel: rigChannel,
  account: DEFAULT_ACCOUNT,
  chat: chatId(String(chat)),
});

const rigChannel = 'telegram' as ChatRef['channel'];

export const answer = (markdown: string, rest: Partial<OutboundMessage> = {}): OutboundMessage => ({
  id: messageId('turn/0'),
  chat: chatOf(ALICE),
  markdown,
  ...rest,
});

/** What the person sees of the bot in a chat, in order. */
export const seenBy = (api: BotApi, chat: number): readonly string[] =>
  api
    .chat(chat)
    .messages.filter(({ from }) => from === 'bot')
    .map(({ text }) => text);
