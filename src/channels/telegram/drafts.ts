// Live previews: an answer that grows in the chat. What does not fit in one message is shown by its end in a
// second one; both become the first parts of the answer. An edit that Telegram has no time for is skipped,
// never queued, so that the final text is not held up.

import { DeliveryError } from '../../kernel/message/errors.ts';
import type { MessageId, NativeId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { parseMarkup } from '../../lib/markup/markup.ts';
import { endOfMarkup, splitMarkdown } from '../../lib/markup/split.ts';
import { type Run, runsText } from '../../lib/markup/writer.ts';
import { tailOf } from '../../lib/text/cut.ts';
import type { Editing } from '../channel.ts';
import { draftMessages, fromNativeId, isGroupId, joinedDraft, telegramThreadId } from './chats.ts';
import { isGone, isUnchanged, toDeliveryError } from './failures.ts';
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
    const delivery = toDeliveryError(error, true);
    if (delivery instanceof DeliveryError && delivery.remedy.kind === 'after') {
      resting.set(chat, clock.monotonic() + delivery.remedy.delayMs);
    }
    return delivery;
  }

  /** While Telegram wants to rest, and in a group sooner than it may. */
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

  /** A message that shows this already is left alone: Telegram refuses to change it. */
  async function changeTo(
    chat: ChatRef,
    message: NativeId,
    runs: readonly Run[],
    signal: AbortSignal,
  ): Promise<void> {
    const address = moves.address(chat);
    if (runsText(runs).trim() === '' || deps.shown.has(address, message, runs)) return;
    if (mayNotChange(address)) return;
    const target = {
      chat_id: address,
      message_id: fromNativeId(message),
      link_preview_options: NO_PREVIEW,
    };
    deps.shown.forget(address, message);
    try {
      await withFallback(runs, deps.log(), (body) =>
        api.editMessageText({ ...target, ...body }, signal),
      );
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
 * What the first message holds, as it will stand there in the end, and the end of the rest. Open fences
 * and emphasis are closed by rendering from the tree. Of a very long text only both ends are read.
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
