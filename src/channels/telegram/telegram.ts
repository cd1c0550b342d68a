// Telegram as a channel: chats and groups with one bot, by long polling. inbound.ts parses updates,
// poll.ts polls them; posts.ts sends answers and drafts.ts live previews.

import { COMMAND_LIST } from '../../features/command-list.ts';
import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import { mayGive } from '../../kernel/commands/command-access.ts';
import { after, DeliveryError, notSent } from '../../kernel/message/errors.ts';
import { DEFAULT_ACCOUNT, type MessageId, type NativeId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { fieldsOf, integerOf, parseJson, textOf } from '../../lib/json/json.ts';
import { silentLogger } from '../../lib/logger.ts';
import { parseMarkup } from '../../lib/markup/markup.ts';
import { endOfMarkup, splitMarkdown } from '../../lib/markup/split.ts';
import { type Run, runsText } from '../../lib/markup/writer.ts';
import { tailOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Channel, ChannelHost, Editing, Typing } from '../channel.ts';
import {
  type Bot,
  botIdOf,
  createGroupMoves,
  draftMessages,
  fromNativeId,
  type GroupMoves,
  isGroupId,
  joinedDraft,
  TELEGRAM,
  telegramMessageId,
  telegramThreadId,
} from './chats.ts';
import { createReactions } from './choices.ts';
import {
  type BotApi,
  BotCallError,
  createBotLink,
  isGone,
  isUnchanged,
  toDeliveryError,
} from './client.ts';
import { fetchFile } from './content.ts';
import {
  createOwnMessages,
  createShownTexts,
  editText,
  MESSAGE_UNITS,
  type PartsDeps,
  sendNew,
} from './parts.ts';
import { type RunDeps, runPolling } from './poll.ts';
import { sendPosts } from './posts.ts';
import type { TelegramConfig } from './settings.ts';

type TelegramDeps = {
  readonly clock: Clock;
  /** 0 to 1; spreads the waits between tries. */
  readonly random: () => number;
};

/** Telegram shows "typing" for five seconds. */
const TYPING_INTERVAL_MS = 4500;
/** Largest file a bot may send (Bot API, Sending files). */
const MAX_UPLOAD_BYTES = 50_000_000;
/** An answer a day late is of no use. */
const LIFETIME_MS = 24 * 3600 * 1000;

export function createTelegramChannel(config: TelegramConfig, deps: TelegramDeps): Channel {
  const { clock } = deps;
  const { token, apiRoot, proxy } = config;
  const link = createBotLink({ token, apiRoot, proxy, clock });
  const { api, send } = link;
  const bot: Bot = { account: DEFAULT_ACCOUNT, botId: botIdOf(config.token) };
  let host: ChannelHost | undefined;
  const log = () => host?.log ?? silentLogger;
  const moves = createGroupMoves();
  // In a group an answer quotes its question.
  const replyTarget = (chat: ChatRef, replyTo: MessageId | undefined, isLate = false) => {
    const address = moves.address(chat);
    const isWanted = isLate || config.quoteReplies || isGroupId(address);
    return isWanted ? telegramMessageId(replyTo, bot, address) : undefined;
  };
  const shown = createShownTexts();
  const drafts = createDrafts({ api, send, clock, log, moves, shown, replyTarget });

  /** Removes the messages of a draft that did not become a part of the answer. */
  async function removeLeft(chat: ChatRef, { nativeIds }: Receipt, context: SendContext) {
    const messages = context.draft === undefined ? [] : draftMessages(context.draft);
    const left = messages.filter((message) => !nativeIds.includes(message));
    if (left.length === 0) return;
    try {
      await drafts.remove(chat, joinedDraft(...left), context.signal);
    } catch (error) {
      if (nativeIds.length === 0) throw error;
      // The answer is in the chat: this failure neither delays it nor makes it undelivered.
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
      if (restMs > 0)
        throw notSent(t`Telegram asked to pause this chat`, after(restMs), 'telegram_resting');
      const target = replyTarget(message.chat, message.replyTo, context.isLate);
      const receipt = await sendPosts(message, context, target, {
        ...{ api, send, clock, log, moves, shown },
        upload: link.upload,
        media: () => host?.media,
      });
      await removeLeft(message.chat, receipt, context);
      return receipt;
    },
  };
}

async function runChannel(deps: RunDeps, signal: AbortSignal): Promise<void> {
  const { api, bot, host, settings } = deps;
  let username = await rememberedName(host, bot.botId);
  const refresh = async () => {
    try {
      username = await refreshProfile(api, host, bot.botId, signal);
    } catch (error) {
      // The menu is optional: it is tried again at the next start.
      if (!(error instanceof BotCallError)) throw error;
      if (!signal.aborted) host.log.info('telegram profile not refreshed', { error });
    }
  };
  let refreshing: Promise<void> = Promise.resolve();
  const onReady = () => {
    refreshing = refresh();
    // Reported when the run ends; until then it must not count as unhandled.
    refreshing.catch(() => undefined);
    return refreshing;
  };
  // In a group the bot is addressed by its name; once known it is stored.
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

// The bot's profile in Telegram: its identity (read once a day) and its command menu (set when it
// changed). Neither delays the first poll.

const IDENTITY_LIFETIME_MS = 24 * 3600 * 1000;

/** The commands of the menu, with shorter descriptions than in `/help`. */
const IN_MENU = [
  { command: 'help', description: t`List all commands` },
  { command: 'new', description: t`Begin a new conversation` },
  { command: 'restore', description: t`Bring back what /new or /undo removed` },
  { command: 'undo', description: t`Take back the last answer` },
  { command: 'stop', description: t`Stop the answer` },
  { command: 'status', description: t`Show the status` },
  { command: 'context', description: t`Show what fills the context window` },
  { command: 'sessions', description: t`List your conversations` },
  { command: 'memory', description: t`Show what I remember about you` },
  { command: 'cron', description: t`List or change your scheduled jobs` },
  { command: 'agents', description: t`List the subagents working for you` },
  { command: 'model', description: t`Show or change the model` },
  { command: 'think', description: t`Switch thinking on or off` },
  { command: 'start', description: t`Say hello` },
];

/** Per kind of chat the commands that a trusted person may use there. */
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

async function rememberedName(host: ChannelHost, botId: number): Promise<string | undefined> {
  return (await readIdentity(host, botId))?.username;
}

/** Updates identity and menu; returns the bot's user name. @throws BotCallError */
async function refreshProfile(
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

// Live previews: an answer that grows in the chat. If it does not fit in one message, a second one
// shows its end; both become the first parts of the answer. An edit that Telegram does not accept
// in time is skipped, never queued, so that the final text is not delayed.

/** Fastest rate at which messages of one chat may change continuously. */
const MIN_EDIT_INTERVAL_MS = 1000;
/** A group gets at most 20 messages and changes a minute from a bot. */
const GROUP_EDIT_INTERVAL_MS = 4000;
/** Source text beyond this does not fit in one message, whatever its markup. */
const MAX_SOURCE_CHARS = 4 * MESSAGE_UNITS;

export type Drafts = Editing & {
  /** Milliseconds until Telegram accepts calls for this chat again; 0 when it does. */
  restMs(chat: number): number;
};

export type DraftDeps = PartsDeps & {
  /** The message that a first draft quotes in the chat, if answers quote. */
  replyTarget(chat: ChatRef, replyTo: MessageId | undefined): number | undefined;
};

export function createDrafts(deps: DraftDeps): Drafts {
  const { api, clock, moves } = deps;
  /** Chats that got 429 on an edit, and until when they pause. */
  const resting = new Map<number, number>();
  /** When a group's draft was last changed, monotonic. */
  const changedAt = new Map<number, number>();

  function restMs(chat: number): number {
    const until = resting.get(chat);
    if (until === undefined) return 0;
    const left = until - clock.monotonic();
    if (left <= 0) resting.delete(chat);
    return Math.max(0, left);
  }

  function isTooSoon(group: number): boolean {
    const now = clock.monotonic();
    const last = changedAt.get(group) ?? Number.NEGATIVE_INFINITY;
    if (now - last < GROUP_EDIT_INTERVAL_MS) return true;
    changed(group);
    return false;
  }

  /** Records a change, and drops groups whose interval is over. */
  function changed(group: number): void {
    const now = clock.monotonic();
    for (const [other, at] of changedAt) {
      if (now - at >= GROUP_EDIT_INTERVAL_MS) changedAt.delete(other);
    }
    changedAt.set(group, now);
  }

  function translate(error: unknown, chat: number): unknown {
    const delivery = toDeliveryError(error, true);
    if (delivery instanceof DeliveryError && delivery.remedy.kind === 'after') {
      resting.set(chat, clock.monotonic() + delivery.remedy.delayMs);
    }
    return delivery;
  }

  /** True during a pause that Telegram asked for, and in a group before its interval is over. */
  function mayNotChange(chat: number): boolean {
    return restMs(chat) > 0 || (isGroupId(chat) && isTooSoon(chat));
  }

  async function placed(
    chat: ChatRef,
    runs: readonly Run[],
    replyTo: number | undefined,
    signal: AbortSignal,
  ): Promise<NativeId> {
    const place = { chat: moves.address(chat), thread: telegramThreadId(chat), replyTo, signal };
    const id = await sendNew({ ...place, runs, marks: [], keyboard: undefined }, deps);
    deps.shown.note(place.chat, id, runs);
    return id;
  }

  /** A message that shows this text already is left alone: Telegram refuses to change it. */
  async function changeTo(
    chat: ChatRef,
    message: NativeId,
    runs: readonly Run[],
    signal: AbortSignal,
  ): Promise<void> {
    const address = moves.address(chat);
    if (runsText(runs).trim() === '' || deps.shown.has(address, message, runs)) return;
    if (mayNotChange(address)) return;
    deps.shown.forget(address, message);
    try {
      await editText({ chat: address, message }, runs, deps, signal);
    } catch (error) {
      if (!isUnchanged(error)) throw translate(error, address);
    }
    deps.shown.note(address, message, runs);
  }

  return {
    minIntervalMs: MIN_EDIT_INTERVAL_MS,
    restMs,
    async place(chat, markdown, { replyTo, signal }) {
      const { first } = piecesOf(markdown);
      const target = deps.replyTarget(chat, replyTo);
      if (isGroupId(moves.address(chat))) changed(moves.address(chat));
      return placed(chat, first, target, signal);
    },
    edit: (chat, draft, markdown, signal) =>
      changeTo(chat, draftMessages(draft)[0] ?? draft, piecesOf(markdown).first, signal),
    async editEnd(chat, draft, markdown, signal) {
      const { end } = piecesOf(markdown);
      const [first = draft, second] = draftMessages(draft);
      if (second !== undefined) {
        await changeTo(chat, second, end, signal);
        return draft;
      }
      if (runsText(end).trim() === '' || mayNotChange(moves.address(chat))) return draft;
      return joinedDraft(first, await placed(chat, end, undefined, signal));
    },
    async remove(chat, draft, signal) {
      for (const message of draftMessages(draft)) {
        const target = { chat_id: moves.address(chat), message_id: fromNativeId(message) };
        deps.shown.forget(target.chat_id, message);
        try {
          await api.deleteMessage(target, signal);
        } catch (error) {
          if (!isGone(error)) throw translate(error, target.chat_id);
        }
      }
    },
  };
}

/**
 * The content of the first message as it will be in the final answer, and the end of the rest. Open
 * fences and emphasis are closed by rendering from the tree. Of a very long text only both ends are
 * read.
 */
function piecesOf(markdown: string) {
  const [part, ...rest] = splitMarkdown(markdown.slice(0, MAX_SOURCE_CHARS), MESSAGE_UNITS);
  const first = part?.runs ?? [];
  const [second, ...more] = rest;
  if (markdown.length <= MAX_SOURCE_CHARS && more.length === 0) {
    return { first, end: second?.runs ?? [] };
  }
  const end = parseMarkup(tailOf(markdown, MAX_SOURCE_CHARS / 2));
  return { first, end: endOfMarkup(end, MESSAGE_UNITS) };
}
