// Lark (Feishu) as a channel: one app's bot over its long connection. inbound.ts parses events,
// connection.ts keeps the connection, and parts.ts sends answers.

import { DEFAULT_ACCOUNT, type MessageId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { listOf, textOf } from '../../lib/json/json.ts';
import { silentLogger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { eachPart } from '../api-calls.ts';
import type { Channel, ChannelHost, Reactions } from '../channel.ts';
import { type BotInfo, createLarkApi, type LarkApi } from './api.ts';
import { createMessages, createOpenCards, type Target, TEXT_UNITS } from './cards.ts';
import { createEvents, createThreads, runConnections } from './connection.ts';
import { isNotThere, LarkCallError, toDeliveryError } from './failures.ts';
import { createDoubts, createDrafts, sendParts } from './parts.ts';
import { at, isId, LARK, larkMessageId, larkReaction } from './rules/content.ts';
import { type LarkConfig, larkRoot } from './settings.ts';
import { createDirectory, createUploads, fetchResource, MAX_UPLOAD_BYTES } from './uploads.ts';

type LarkDeps = {
  readonly clock: Clock;
  /** 0 to 1; spreads the waits between tries. */
  readonly random: () => number;
};

/** An answer a day late is of no use. */
const LIFETIME_MS = 24 * 3600 * 1000;

export function createLarkChannel(config: LarkConfig, { clock, random }: LarkDeps): Channel {
  const { appId, appSecret, proxy } = config;
  const app = { appId, appSecret, proxy, root: larkRoot(config.domain) };
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

  // In a group or a thread an answer quotes its question.
  async function targetOf(
    chat: ChatRef,
    replyTo: MessageId | undefined,
    isLate = false,
  ): Promise<Target> {
    const question = larkMessageId(replyTo);
    if (chat.thread !== undefined) {
      const anchor = await threads.anchor(chat.thread);
      return { chat, answering: [...new Set([question, anchor])].filter(isId) };
    }
    if (question === undefined) return { chat, answering: [] };
    if (isLate || config.quoteReplies) return { chat, answering: [question] };
    const isPrivate = (await directory.chat(chat.chat))?.isGroup === false;
    return { chat, answering: isPrivate ? [] : [question] };
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
      fetch: (ref, signal) => fetchResource(ref, signal, { api, clock }),
    },
    reactions: createReactions(api, appId, config.ackReaction),
    retracting: {
      retract: (_chat, parts, signal) =>
        eachPart(parts, async (part) => {
          try {
            await messages.remove(part, signal);
          } catch (error) {
            if (!isNotThere(error)) throw toDeliveryError(error, true);
          }
        }),
    },
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

// The reaction set on people's messages while the agent works. Lark needs the id it assigned to
// remove one. open.feishu.cn/document/server-docs/im-v1/message-reaction/create

export function createReactions(
  api: LarkApi,
  appId: string,
  acknowledgement: LarkConfig['ackReaction'],
): Reactions {
  const path = (message: string) => `im/v1/messages/${message}/reactions`;

  async function set(message: string, name: string, signal: AbortSignal) {
    const data = { reaction_type: { emoji_type: name } };
    await api.call({ method: 'POST', path: path(message), data, signal });
  }

  /** Also removes what an earlier process set. */
  async function clear(message: string, signal: AbortSignal) {
    const params = { page_size: '50' };
    const answer = await api.call({ method: 'GET', path: path(message), params, signal });
    for (const one of listOf(at(answer, 'data', 'items'))) {
      const id = textOf(at(one, 'reaction_id'));
      if (at(one, 'operator', 'operator_id') !== appId || !isId(id)) continue;
      await api.call({ method: 'DELETE', path: `${path(message)}/${id}`, signal });
    }
  }

  return {
    ...(acknowledgement === '' ? {} : { acknowledgement }),
    async react(to, emoji, signal) {
      const message = larkMessageId(to);
      if (message === undefined) return;
      const name = emoji === undefined ? undefined : larkReaction(emoji);
      try {
        if (name === undefined) await clear(message, signal);
        else await set(message, name, signal);
      } catch (error) {
        if (error instanceof LarkCallError && isNotThere(error)) return;
        throw toDeliveryError(error, true);
      }
    },
  };
}
