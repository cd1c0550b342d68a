// Lark (Feishu) as a channel: one app's bot, over its long connection. What an event means is in
// inbound.ts and signs.ts, when to connect in run.ts, how an answer goes out in parts.ts and drafts.ts.

import type { LarkConfig } from '../../kernel/config/config.ts';
import { DEFAULT_ACCOUNT, type MessageId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { silentLogger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Channel, ChannelHost, Retracting } from '../channel.ts';
import { type BotInfo, createLarkApi } from './api.ts';
import { createOpenCards, TEXT_UNITS } from './cards.ts';
import { createDirectory } from './directory.ts';
import { createDoubts } from './doubts.ts';
import { createDrafts } from './drafts.ts';
import { createEvents } from './events.ts';
import { isNotThere, toDeliveryError } from './failures.ts';
import { LARK, larkMessageId } from './ids.ts';
import { createMessages, type Messages, type Target } from './messages.ts';
import { sendParts } from './parts.ts';
import { createReactions } from './reactions.ts';
import { larkRoot } from './rules/reactions.ts';
import { runConnections } from './run.ts';
import { createThreads } from './threads.ts';
import { createUploads, fetchResource, MAX_UPLOAD_BYTES } from './uploads.ts';

export type LarkDeps = {
  readonly clock: Clock;
  /** 0 to 1; spreads the waits between tries. */
  readonly random: () => number;
};

/** An answer a day late helps nobody. */
const LIFETIME_MS = 24 * 3600 * 1000;

export function createLarkChannel(config: LarkConfig, { clock, random }: LarkDeps): Channel {
  const { appId, appSecret } = config;
  const app = { appId, appSecret, root: larkRoot(config.domain) };
  const api = createLarkApi(app, clock);
  const directory = createDirectory(api, clock);
  const messages = createMessages(api);
  let host: ChannelHost | undefined;
  const log = () => host?.log ?? silentLogger;
  const state = () => host?.state;
  const threads = createThreads(state);
  const openCards = createOpenCards(messages, clock, state);
  const uploads = createUploads(api, () => host?.media);
  const parts = { messages, uploads, openCards, doubts: createDoubts(clock), clock, log };

  // Among several people, and in a thread, an answer stands below its question.
  async function targetOf(
    chat: ChatRef,
    replyTo: MessageId | undefined,
    isLate = false,
  ): Promise<Target> {
    const question = larkMessageId(replyTo);
    if (chat.thread !== undefined) {
      return { chat, answering: question ?? (await threads.anchor(chat.thread)) };
    }
    if (question === undefined) return { chat, answering: undefined };
    if (isLate || config.quoteReplies) return { chat, answering: question };
    const isPrivate = (await directory.chat(chat.chat))?.isGroup === false;
    return { chat, answering: isPrivate ? undefined : question };
  }

  const drafts = createDrafts({ messages, log, targetOf });

  return {
    name: LARK,
    account: DEFAULT_ACCOUNT,
    limits: { textUnits: TEXT_UNITS },
    onUnknown: 'idempotent',
    announcesRequests: true,
    lifetimeMs: LIFETIME_MS,
    coalesces: true,
    choices: 'buttons',
    quotesWhenLate: true,
    attachments: {
      maxUploadBytes: MAX_UPLOAD_BYTES,
      maxCaptionUnits: TEXT_UNITS,
      fetch: (ref, signal) => fetchResource(ref, signal, { api, clock }),
    },
    reactions: createReactions(api, appId, config.ackReaction),
    retracting: createRetracting(messages),
    closeChoices: (_chat, part, signal, now) => openCards.close(part, signal, now),
    ...(config.streaming ? { editing: drafts } : {}),
    async run(givenHost, signal) {
      host = givenHost;
      let bot: BotInfo | undefined;
      const context = () => ({
        ...{ appId, directory },
        botId: bot?.openId ?? '',
        receivedAt: givenHost.clock.now(),
      });
      const events = createEvents({ host, threads, groups: config.groups, context });
      const onBot = (found: BotInfo) => {
        bot = found;
      };
      await openCards.expire();
      const receiving = AbortSignal.any([signal, host.closing]);
      await runConnections({ api, app, host, events, random, onBot }, receiving);
    },
    async send(message, context) {
      const target = await targetOf(message.chat, message.replyTo, context.isLate);
      const receipt = await sendParts(message, context, target, parts);
      if (receipt.nativeIds.length === 0 && context.draft !== undefined) {
        await drafts.remove(message.chat, context.draft, context.signal);
      }
      return receipt;
    },
  };
}

function createRetracting(messages: Messages): Retracting {
  return {
    async retract(_chat, parts, signal) {
      let failure: unknown;
      for (const part of parts) {
        try {
          await messages.remove(part, signal);
        } catch (error) {
          if (!isNotThere(error)) failure = toDeliveryError(error, true);
        }
      }
      if (failure !== undefined) throw failure;
    },
  };
}
