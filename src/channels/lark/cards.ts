// The calls that create, change and remove sent messages, and the cards for texts (JSON 2.0):
// Markdown and buttons. Lark accepts a message of one `uuid` once within an hour, so a repeat
// within that time is the same message.
// open.feishu.cn/document/server-docs/im-v1/message/create, .../reply, .../patch, .../delete
// open.feishu.cn/document/feishu-cards/card-json-v2-structure

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { type NativeId, nativeId } from '../../kernel/message/ids.ts';
import type { ChatRef, Choice } from '../../kernel/message/message.ts';
import { textOf } from '../../lib/json/json.ts';
import { splitMarkdown } from '../../lib/markup/split.ts';
import { type Run, runsText } from '../../lib/markup/writer.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { buttonRows } from '../api-calls.ts';
import type { LarkApi } from './api.ts';
import { isGone, isNotThere, LarkCallError, toDeliveryError } from './failures.ts';
import { at, isId } from './rules/content.ts';
import { renderLark } from './rules/markup.ts';

export type Body = {
  readonly msg_type: 'interactive' | 'image' | 'file' | 'audio' | 'media';
  readonly content: string;
};

export type Target = {
  readonly chat: ChatRef;
  /** Lark's ids of the message it answers and, in a thread, of one that may stand in for it. */
  readonly answering: readonly string[];
};

export type Messages = ReturnType<typeof createMessages>;

export function createMessages(api: LarkApi) {
  async function post(
    path: string,
    data: Readonly<Record<string, unknown>>,
    params: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<NativeId> {
    const answer = await api.call({ method: 'POST', path, data, params, signal });
    const id = textOf(at(answer, 'data', 'message_id'));
    if (isId(id)) return nativeId(id);
    throw new LarkCallError({ kind: 'unanswered', reason: t`it names no message` });
  }

  const into = ({ chat }: Target, body: object, signal: AbortSignal) =>
    post(
      'im/v1/messages',
      { receive_id: chat.chat, ...body },
      { receive_id_type: receiverKind(chat.chat) },
      signal,
    );

  return {
    /** An answer to a deleted message goes to the chat without a quote. @throws LarkCallError */
    async create(
      target: Target,
      body: Body,
      uuid: string | undefined,
      signal: AbortSignal,
    ): Promise<NativeId> {
      const named = uuid === undefined ? body : { ...body, uuid };
      const { answering, chat } = target;
      const reply = { ...named, ...(chat.thread === undefined ? {} : { reply_in_thread: true }) };
      for (const [index, id] of answering.entries()) {
        try {
          return await post(`im/v1/messages/${id}/reply`, reply, {}, signal);
        } catch (error) {
          // What belongs to a thread is not sent outside of it without a note.
          const isLast = chat.thread !== undefined && index === answering.length - 1;
          if (!isNotThere(error) || isLast) throw error;
        }
      }
      return into(target, named, signal);
    },
    /** `content`: the card. @throws LarkCallError */
    async change(id: NativeId, content: string, signal: AbortSignal): Promise<void> {
      await api.call({ method: 'PATCH', path: `im/v1/messages/${id}`, data: { content }, signal });
    },
    /** @throws LarkCallError */
    async remove(id: NativeId, signal: AbortSignal): Promise<void> {
      await api.call({ method: 'DELETE', path: `im/v1/messages/${id}`, signal });
    },
  };
}

function receiverKind(id: string): 'open_id' | 'union_id' | 'chat_id' {
  if (id.startsWith('ou_')) return 'open_id';
  return id.startsWith('on_') ? 'union_id' : 'chat_id';
}

/** As shown; the data sent for it stays below the 30 KB of a card (im-v1/message/create). */
export const TEXT_UNITS = 4000;
const SUMMARY_CHARS = 80;

export type Card = {
  readonly runs: readonly Run[];
  readonly choices?: readonly Choice[];
  /** Its thread: a press does not contain it. */
  readonly thread?: string | undefined;
};

/** `isPlain`: without markup, if Lark refuses it. */
export function cardJson({ runs, choices = [], thread }: Card, isPlain = false): string {
  const text = isPlain
    ? { tag: 'div', text: { tag: 'plain_text', content: runsText(runs) } }
    : { tag: 'markdown', content: renderLark(runs) };
  const summary = headOf(runsText(runs).trim(), SUMMARY_CHARS);
  return JSON.stringify({
    schema: '2.0',
    // Only a card that is the same for everybody can be changed later.
    config: { update_multi: true, summary: { content: summary } },
    body: { elements: [text, ...buttonsOf(choices, thread)] },
  });
}

function buttonsOf(choices: readonly Choice[], thread: string | undefined): readonly unknown[] {
  const rows = buttonRows(choices, ({ label, token }) => ({
    tag: 'button',
    text: { tag: 'plain_text', content: label },
    behaviors: [{ type: 'callback', value: { token, label, thread } }],
  }));
  return rows.flatMap((row): readonly unknown[] => {
    const columns = row.map((button) => ({ tag: 'column', width: 'auto', elements: [button] }));
    return row.length < 2 ? row : [{ tag: 'column_set', flex_mode: 'flow', columns }];
  });
}

// Cards with active buttons. To remove the buttons Lark requires the whole card again, so it is
// stored without them until then.

export type OpenCards = ReturnType<typeof createOpenCards>;

const PREFIX = 'card:';
/** A card can be changed for 14 days (im-v1/message/patch). */
const LIFETIME_MS = 14 * 24 * 3_600_000;

export function createOpenCards(
  messages: Messages,
  clock: Clock,
  state: () => KeyValueStore | undefined,
) {
  return {
    async keep(id: NativeId, { runs }: Card): Promise<void> {
      await state()?.set(PREFIX + id, cardJson({ runs }));
    },
    /** Sets the card's text to `now`, if given; whether it shows it. @throws DeliveryError */
    async close(id: NativeId, signal: AbortSignal, now?: string): Promise<boolean> {
      const kept = await state()?.get(PREFIX + id);
      if (kept === undefined) return false;
      const [whole, ...more] = now === undefined ? [] : splitMarkdown(now, TEXT_UNITS);
      const isOne = whole !== undefined && more.length === 0;
      try {
        await messages.change(id, isOne ? cardJson({ runs: whole.runs }) : kept, signal);
      } catch (error) {
        if (!isGone(error)) throw toDeliveryError(error, true);
        await state()?.delete(PREFIX + id);
        return false;
      }
      return now === undefined || isOne;
    },
    /** Deletes cards without presses for a long time. */
    async expire(): Promise<void> {
      await state()?.expire(PREFIX, clock.now() - LIFETIME_MS);
    },
  };
}
