// Telegram as a channel: chats and groups with one bot, by long polling. Updates are parsed in inbound.ts and
// polled by poll.ts; answers go out by posts.ts and drafts.ts.

import { COMMAND_LIST } from '../../features/command-list.ts';
import { mayGive } from '../../kernel/access/command-access.ts';
import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import { after, DeliveryError } from '../../kernel/message/errors.ts';
import { DEFAULT_ACCOUNT, type MessageId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { fieldsOf, integerOf, parseJson, textOf } from '../../lib/json/json.ts';
import { silentLogger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Channel, ChannelHost, Typing } from '../channel.ts';
import {
  type Bot,
  botIdOf,
  createGroupMoves,
  draftMessages,
  type GroupMoves,
  isGroupId,
  joinedDraft,
  TELEGRAM,
  telegramMessageId,
  telegramThreadId,
} from './chats.ts';
import { createReactions } from './choices.ts';
import { type BotApi, createBotLink } from './client.ts';
import { fetchFile } from './content.ts';
import { createDrafts } from './drafts.ts';
import { BotCallError, toDeliveryError } from './failures.ts';
import { createOwnMessages, createShownTexts, MESSAGE_UNITS } from './parts.ts';
import { type RunDeps, runPolling } from './poll.ts';
import { CAPTION_UNITS, sendPosts } from './posts.ts';
import type { TelegramConfig } from './settings.ts';

export { type ProvenBot, pairingLink, proveTelegram } from './client.ts';

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
        throw toDeliveryError(error, true);
      }
    },
  };
}

// What Telegram shows of the bot: who it is (asked once a day) and its command menu (set when it
// changed). Neither may hold up the first poll.

const IDENTITY_LIFETIME_MS = 24 * 3600 * 1000;

/** The commands of the menu, described in fewer words than `/help` does. */
const IN_MENU = [
  { command: 'help', description: 'What I can do' },
  { command: 'new', description: 'Begin a new conversation' },
  { command: 'restore', description: 'Bring back what /new or /undo took away' },
  { command: 'undo', description: 'Take the last answer back' },
  { command: 'stop', description: 'Stop the answer' },
  { command: 'status', description: 'How things stand' },
  { command: 'context', description: 'What fills my memory of this conversation' },
  { command: 'sessions', description: 'Your conversations' },
  { command: 'memory', description: 'What I keep in mind' },
  { command: 'cron', description: 'Your scheduled jobs' },
  { command: 'agents', description: 'The helpers at work for you' },
  { command: 'model', description: 'Show or change the model' },
  { command: 'think', description: 'Switch thinking on or off' },
  { command: 'start', description: 'Say hello' },
];

/** Per kind of chat those that somebody who is trusted may give there. */
const MENUS = (['direct', 'group'] as const).map((place) => ({
  commands: IN_MENU.filter(({ command }) =>
    COMMAND_LIST.some(
      ({ name, access }) =>
        name === command &&
        mayGive(access, { role: 'trusted', place, verified: 'verified' }) === 'yes',
    ),
  ),
  scope: { type: place === 'direct' ? ('default' as const) : ('all_group_chats' as const) },
}));

export async function rememberedName(
  host: ChannelHost,
  botId: number,
): Promise<string | undefined> {
  return (await readIdentity(host, botId))?.username;
}

/** Brings identity and menu up to date; returns the bot's user name. @throws BotCallError */
export async function refreshProfile(
  api: BotApi,
  host: ChannelHost,
  botId: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const known = await readIdentity(host, botId);
  const isFresh = known !== undefined && host.clock.now() - known.at < IDENTITY_LIFETIME_MS;
  const username = isFresh ? known.username : (await api.getMe(signal)).username;
  if (!isFresh) {
    await host.state.set(`me:${botId}`, JSON.stringify({ username, at: host.clock.now() }));
  }
  const menu = JSON.stringify(MENUS);
  if ((await host.state.get(`menu:${botId}`)) !== menu) {
    for (const each of MENUS) await api.setMyCommands(each, signal);
    await host.state.set(`menu:${botId}`, menu);
  }
  return username;
}

async function readIdentity(host: ChannelHost, botId: number) {
  const stored = await host.state.get(`me:${botId}`);
  const fields = stored === undefined ? undefined : fieldsOf(parseJson(stored));
  const username = textOf(fields?.['username']);
  const at = integerOf(fields?.['at']);
  return username === undefined || at === undefined ? undefined : { username, at };
}
