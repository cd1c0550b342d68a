// What becomes of messages of ours after they were sent: their buttons are taken away, with a word of
// what came of them, or they themselves.

import type { NativeId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import type { Logger } from '../../lib/logger.ts';
import { splitMarkdown } from '../../lib/markup/split.ts';
import type { Channel, Retracting } from '../channel.ts';
import type { BotApi } from './client.ts';
import { BotCallError, isGone, isNotThere, isUnchanged, toDeliveryError } from './failures.ts';
import type { GroupMoves } from './groups.ts';
import { draftMessages, fromNativeId } from './ids.ts';
import { MESSAGE_UNITS, NO_PREVIEW, withFallback } from './parts.ts';

export type OwnMessages = {
  readonly retracting: Retracting;
  readonly closeChoices: NonNullable<Channel['closeChoices']>;
};

export function createOwnMessages(api: BotApi, moves: GroupMoves, log: () => Logger): OwnMessages {
  const target = (chat: ChatRef, part: NativeId) => ({
    chat_id: moves.address(chat),
    message_id: fromNativeId(part),
  });

  /** A bot deletes what it sent within 48 hours (Bot API, deleteMessage); older messages stay. */
  async function remove(chat: ChatRef, part: NativeId, signal: AbortSignal): Promise<unknown> {
    try {
      await api.deleteMessage(target(chat, part), signal);
      return undefined;
    } catch (error) {
      if (isNotThere(error)) return undefined;
      return error instanceof BotCallError ? toDeliveryError(error, true) : error;
    }
  }

  /** Without a keyboard of its own the text loses the one it had (Bot API, editMessageText). */
  async function rewrite(chat: ChatRef, part: NativeId, now: string, signal: AbortSignal) {
    const [whole, ...more] = splitMarkdown(now, MESSAGE_UNITS);
    if (whole === undefined || more.length > 0) {
      await api.editMessageReplyMarkup(target(chat, part), signal);
      return;
    }
    await withFallback(whole.runs, log(), (body) =>
      api.editMessageText(
        { ...target(chat, part), ...body, link_preview_options: NO_PREVIEW },
        signal,
      ),
    );
  }

  return {
    retracting: {
      async retract(chat, parts, signal) {
        let failure: unknown;
        for (const part of parts.flatMap(draftMessages))
          failure = (await remove(chat, part, signal)) ?? failure;
        if (failure !== undefined) throw failure;
      },
    },

    async closeChoices(chat, part, signal, now) {
      try {
        await (now === undefined
          ? api.editMessageReplyMarkup(target(chat, part), signal)
          : rewrite(chat, part, now, signal));
      } catch (error) {
        if (isUnchanged(error) || isGone(error)) return;
        throw error instanceof BotCallError ? toDeliveryError(error, true) : error;
      }
    },
  };
}
