// Telegram as a channel: private chats with one bot, by long polling. What an update means is in
// inbound.ts, when to poll in poll.ts, how an answer goes out in parts.ts and drafts.ts.

import type { TelegramConfig } from '../../core/config.ts';
import { after, DeliveryError } from '../../core/errors.ts';
import { DEFAULT_ACCOUNT, type MessageId } from '../../core/ids.ts';
import type { Clock } from '../../lib/clock.ts';
import { silentLogger } from '../../lib/logger.ts';
import type { Channel, ChannelHost, Typing } from '../channel.ts';
import { type BotApi, createBotApi } from './client.ts';
import { createDrafts } from './drafts.ts';
import { BotCallError, toDeliveryError } from './failures.ts';
import { type Bot, botIdOf, TELEGRAM, telegramChatId, telegramMessageId } from './ids.ts';
import { MESSAGE_UNITS, sendParts } from './parts.ts';
import { runPolling } from './poll.ts';
import { refreshProfile, rememberedName } from './profile.ts';

export { type ProvenBot, pairingLink, proveTelegram } from './prove.ts';

export type TelegramDeps = {
  readonly clock: Clock;
  /** 0 to 1; spreads the waits between tries. */
  readonly random: () => number;
};

/** Telegram shows "typing" for five seconds. */
const TYPING_INTERVAL_MS = 4500;
/** An answer a day late helps nobody. */
const LIFETIME_MS = 24 * 3600 * 1000;

export function createTelegramChannel(config: TelegramConfig, deps: TelegramDeps): Channel {
  const { clock } = deps;
  const api = createBotApi({ token: config.token, apiRoot: config.apiRoot, clock });
  const bot: Bot = { account: DEFAULT_ACCOUNT, botId: botIdOf(config.token) };
  let host: ChannelHost | undefined;
  const log = () => host?.log ?? silentLogger;
  const replyTarget = (replyTo: MessageId | undefined) =>
    config.quoteReplies ? telegramMessageId(replyTo, bot) : undefined;
  const drafts = createDrafts({ api, clock, log, replyTarget });

  return {
    name: TELEGRAM,
    account: bot.account,
    limits: { textUnits: MESSAGE_UNITS },
    onUnknown: 'resend',
    lifetimeMs: LIFETIME_MS,
    coalesces: true,
    typing: createTyping(api),
    ...(config.streaming ? { editing: drafts } : {}),
    async run(givenHost, signal) {
      host = givenHost;
      const receiving = AbortSignal.any([signal, host.closing]);
      await runChannel({ api, bot, host, random: deps.random }, receiving);
    },
    async send(message, context) {
      const restMs = drafts.restMs(telegramChatId(message.chat));
      if (restMs > 0) throw new DeliveryError('Telegram asked this chat to rest', resting(restMs));
      const receipt = await sendParts(message, context, replyTarget(message.replyTo), {
        api,
        clock,
        log,
      });
      const isEmpty = receipt.nativeIds.length === 0;
      if (isEmpty && context.draft !== undefined) {
        await drafts.remove(message.chat, context.draft, context.signal);
      }
      return receipt;
    },
  };
}

const resting = (restMs: number) =>
  ({ certainty: 'not_sent', remedy: after(restMs), code: 'telegram_resting' }) as const;

type RunDeps = {
  readonly api: BotApi;
  readonly bot: Bot;
  readonly host: ChannelHost;
  readonly random: () => number;
};

async function runChannel(deps: RunDeps, signal: AbortSignal): Promise<void> {
  const { api, bot, host } = deps;
  let account = await rememberedName(host, bot.botId);
  const refresh = async () => {
    try {
      account = await refreshProfile(api, host, bot.botId, signal);
    } catch (error) {
      // The menu is a convenience: it is tried again at the next start.
      if (!(error instanceof BotCallError)) throw error;
      if (!signal.aborted) host.log.info('telegram profile not refreshed', { error });
    }
  };
  let refreshing: Promise<void> = Promise.resolve();
  const onReady = () => {
    refreshing = refresh();
    // Reported when the run ends; until then it must not count as unhandled.
    refreshing.catch(() => undefined);
  };
  const name = () => (account === undefined ? undefined : `@${account}`);
  await runPolling({ ...deps, account: name, onReady }, signal);
  await refreshing;
}

function createTyping(api: BotApi): Typing {
  return {
    intervalMs: TYPING_INTERVAL_MS,
    async show(chat, signal) {
      try {
        await api.sendChatAction({ chat_id: telegramChatId(chat), action: 'typing' }, signal);
      } catch (error) {
        throw error instanceof BotCallError ? toDeliveryError(error, true) : error;
      }
    },
  };
}
