// Telegram as a channel: chats and groups with one bot, by long polling. What an update means is in
// inbound.ts, when to poll in poll.ts, how an answer goes out in parts.ts and drafts.ts.

import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import type { TelegramConfig } from '../../kernel/config/config.ts';
import { after, DeliveryError } from '../../kernel/message/errors.ts';
import { DEFAULT_ACCOUNT, type MessageId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { silentLogger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Channel, ChannelHost, Typing } from '../channel.ts';
import { type BotApi, createBotLink } from './client.ts';
import { createDrafts } from './drafts.ts';
import { BotCallError, toDeliveryError } from './failures.ts';
import { fetchFile } from './files.ts';
import { createGroupMoves, type GroupMoves } from './groups.ts';
import {
  type Bot,
  botIdOf,
  draftMessages,
  isGroupId,
  joinedDraft,
  TELEGRAM,
  telegramMessageId,
  telegramThreadId,
} from './ids.ts';
import { createOwnMessages } from './own-messages.ts';
import { createShownTexts, MESSAGE_UNITS } from './parts.ts';
import { runPolling } from './poll.ts';
import { sendPosts } from './posts.ts';
import { refreshProfile, rememberedName } from './profile.ts';
import { createReactions } from './reactions.ts';
import { CAPTION_UNITS } from './send-files.ts';

export { type ProvenBot, pairingLink, proveTelegram } from './prove.ts';

export type TelegramDeps = {
  readonly clock: Clock;
  /** 0 to 1; spreads the waits between tries. */
  readonly random: () => number;
};

/** Telegram shows "typing" for five seconds. */
const TYPING_INTERVAL_MS = 4500;
/** Largest file a bot may send (Bot API, Sending files). */
const MAX_UPLOAD_BYTES = 50_000_000;
/** An answer a day late helps nobody. */
const LIFETIME_MS = 24 * 3600 * 1000;

export function createTelegramChannel(config: TelegramConfig, deps: TelegramDeps): Channel {
  const { clock } = deps;
  const link = createBotLink({ token: config.token, apiRoot: config.apiRoot, clock });
  const { api } = link;
  const bot: Bot = { account: DEFAULT_ACCOUNT, botId: botIdOf(config.token) };
  let host: ChannelHost | undefined;
  const log = () => host?.log ?? silentLogger;
  const moves = createGroupMoves();
  // Among several people an answer shows whose question it answers.
  const replyTarget = (chat: ChatRef, replyTo: MessageId | undefined, isLate = false) => {
    const address = moves.address(chat);
    const isWanted = isLate || config.quoteReplies || isGroupId(address);
    return isWanted ? telegramMessageId(replyTo, bot, address) : undefined;
  };
  const shown = createShownTexts();
  const drafts = createDrafts({ api, clock, log, moves, shown, replyTarget });

  /** What of a draft has not become a part of the answer. */
  async function removeLeft(chat: ChatRef, { nativeIds }: Receipt, context: SendContext) {
    const messages = context.draft === undefined ? [] : draftMessages(context.draft);
    const left = messages.filter((message) => !nativeIds.includes(message));
    if (left.length === 0) return;
    try {
      await drafts.remove(chat, joinedDraft(...left), context.signal);
    } catch (error) {
      if (nativeIds.length === 0) throw error;
      // The answer stands in the chat: it is not held up, nor called undelivered, for this.
      log().info('telegram draft not removed', { error });
    }
  }

  return {
    name: TELEGRAM,
    account: bot.account,
    limits: { textUnits: MESSAGE_UNITS },
    onUnknown: 'resend',
    announcesRequests: true,
    lifetimeMs: LIFETIME_MS,
    coalesces: true,
    quotesWhenLate: true,
    typing: createTyping(api, moves),
    choices: 'buttons',
    attachments: {
      maxUploadBytes: MAX_UPLOAD_BYTES,
      maxCaptionUnits: CAPTION_UNITS,
      fetch: (ref, signal) => fetchFile(ref, signal, link),
    },
    ...createOwnMessages(api, moves, log),
    reactions: createReactions(api, bot, moves, config.ackReaction),
    ...(config.streaming ? { editing: drafts } : {}),
    async run(givenHost, signal) {
      host = givenHost;
      const receiving = AbortSignal.any([signal, host.closing]);
      await moves.load(host);
      await runChannel({ api, bot, host, moves, settings: config, random: deps.random }, receiving);
    },
    async send(message, context) {
      const restMs = drafts.restMs(moves.address(message.chat));
      if (restMs > 0) throw new DeliveryError('Telegram asked this chat to rest', resting(restMs));
      const target = replyTarget(message.chat, message.replyTo, context.isLate);
      const receipt = await sendPosts(message, context, target, {
        ...{ api, clock, log, moves, shown },
        upload: link.upload,
        media: () => host?.media,
      });
      await removeLeft(message.chat, receipt, context);
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
  readonly moves: GroupMoves;
  readonly settings: TelegramConfig;
  readonly random: () => number;
};

async function runChannel(deps: RunDeps, signal: AbortSignal): Promise<void> {
  const { api, bot, host, settings } = deps;
  let username = await rememberedName(host, bot.botId);
  const refresh = async () => {
    try {
      username = await refreshProfile(api, host, bot.botId, signal);
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
  // In a group the bot is known by its name; once learnt it is remembered.
  if (username === undefined && settings.groups.length > 0) await refresh();
  await runPolling({ ...deps, username: () => username, onReady }, signal);
  await refreshing;
}

function createTyping(api: BotApi, moves: GroupMoves): Typing {
  return {
    intervalMs: TYPING_INTERVAL_MS,
    async show(chat, signal) {
      try {
        const thread = telegramThreadId(chat);
        const topic = thread === undefined ? {} : { message_thread_id: thread };
        const notice = { chat_id: moves.address(chat), ...topic, action: 'typing' } as const;
        await api.sendChatAction(notice, signal);
      } catch (error) {
        throw error instanceof BotCallError ? toDeliveryError(error, true) : error;
      }
    },
  };
}
