// The editing power: an answer that grows in the chat. A draft is best effort: what Telegram has no
// time for is skipped, never queued, so that the final text is not held up behind it.

import type { MessageId } from '../../core/ids.ts';
import { truncateMarkup } from '../../core/markup/split.ts';
import { type Run, runsText } from '../../core/markup/writer.ts';
import { parseMarkup } from '../../core/markup.ts';
import type { ChatRef } from '../../core/message.ts';
import type { Editing } from '../channel.ts';
import { BotCallError, isGone, isUnchanged, toDeliveryError } from './failures.ts';
import { fromNativeId, isGroupId, telegramThreadId } from './ids.ts';
import { MESSAGE_UNITS, NO_PREVIEW, type PartsDeps, sendNew, withFallback } from './parts.ts';

/** Fastest Telegram lets one chat's messages change for long. */
const MIN_EDIT_INTERVAL_MS = 1000;
/** A group gets no more than 20 messages and changes a minute from a bot. */
const GROUP_EDIT_INTERVAL_MS = 4000;
/** Source text beyond this cannot be part of one message, whatever its markup. */
const MAX_SOURCE_CHARS = 4 * MESSAGE_UNITS;

export type Drafts = Editing & {
  /** Milliseconds until Telegram wants to hear of this chat again; 0 when it does. */
  restMs(chat: number): number;
};

export type DraftDeps = PartsDeps & {
  /** The message a first draft answers in the chat, where answers quote. */
  replyTarget(chat: ChatRef, replyTo: MessageId | undefined): number | undefined;
};

export function createDrafts(deps: DraftDeps): Drafts {
  const { api, clock, moves } = deps;
  /** Chats that got 429 on an edit, and until when they rest. */
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

  /** Of others only what still counts is kept. */
  function changed(group: number): void {
    const now = clock.monotonic();
    for (const [other, at] of changedAt) {
      if (now - at >= GROUP_EDIT_INTERVAL_MS) changedAt.delete(other);
    }
    changedAt.set(group, now);
  }

  function translate(error: unknown, chat: number): unknown {
    if (!(error instanceof BotCallError)) return error;
    const delivery = toDeliveryError(error, true);
    if (delivery.remedy.kind === 'after') {
      resting.set(chat, clock.monotonic() + delivery.remedy.delayMs);
    }
    return delivery;
  }

  return {
    minIntervalMs: MIN_EDIT_INTERVAL_MS,
    restMs,
    place(chat, markdown, { replyTo, signal }) {
      const target = deps.replyTarget(chat, replyTo);
      const runs = beginning(markdown);
      const place = { chat: moves.address(chat), thread: telegramThreadId(chat) };
      if (isGroupId(place.chat)) changed(place.chat);
      return sendNew(
        { ...place, runs, marks: [], replyTo: target, keyboard: undefined, signal },
        deps,
      );
    },
    async edit(chat, draft, markdown, signal) {
      const chatNumber = moves.address(chat);
      const runs = beginning(markdown);
      if (restMs(chatNumber) > 0 || runsText(runs).trim() === '') return;
      if (isGroupId(chatNumber) && isTooSoon(chatNumber)) return;
      const target = {
        chat_id: chatNumber,
        message_id: fromNativeId(draft),
        link_preview_options: NO_PREVIEW,
      };
      try {
        await withFallback(runs, deps.log(), (body) =>
          api.editMessageText({ ...target, ...body }, signal),
        );
      } catch (error) {
        if (!isUnchanged(error)) throw translate(error, chatNumber);
      }
    },
    async remove(chat, draft, signal) {
      const target = { chat_id: moves.address(chat), message_id: fromNativeId(draft) };
      try {
        await api.deleteMessage(target, signal);
      } catch (error) {
        if (!isGone(error)) throw translate(error, target.chat_id);
      }
    },
  };
}

/** As much as one message holds; open fences and emphasis are closed by rendering from the tree. */
function beginning(markdown: string): readonly Run[] {
  return truncateMarkup(parseMarkup(markdown.slice(0, MAX_SOURCE_CHARS)), MESSAGE_UNITS);
}
