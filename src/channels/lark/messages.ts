// The calls that make, change and take away messages of ours. Lark takes a message of one `uuid` once
// within an hour, so a repeat within that time is the same message.
// open.feishu.cn/document/server-docs/im-v1/message/create, .../reply, .../patch, .../delete

import { type NativeId, nativeId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { textOf } from '../../lib/json/json.ts';
import type { LarkApi } from './api.ts';
import { at } from './content.ts';
import { isNotThere, LarkCallError } from './failures.ts';
import { isId } from './ids.ts';

export type Body = {
  readonly msg_type: 'interactive' | 'image' | 'file' | 'audio' | 'media';
  readonly content: string;
};

export type Target = {
  readonly chat: ChatRef;
  /** Lark's id of the message it answers. */
  readonly answering: string | undefined;
};

export type Messages = {
  /** An answer to what is gone goes into the chat by itself. @throws LarkCallError */
  create(
    target: Target,
    body: Body,
    uuid: string | undefined,
    signal: AbortSignal,
  ): Promise<NativeId>;
  /** @throws LarkCallError */
  change(id: NativeId, card: string, signal: AbortSignal): Promise<void>;
  /** @throws LarkCallError */
  remove(id: NativeId, signal: AbortSignal): Promise<void>;
};

export function createMessages(api: LarkApi): Messages {
  async function post(
    path: string,
    data: Readonly<Record<string, unknown>>,
    params: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<NativeId> {
    const answer = await api.call({ method: 'POST', path, data, params, signal });
    const id = textOf(at(answer, 'data', 'message_id'));
    if (isId(id)) return nativeId(id);
    throw new LarkCallError({ kind: 'unanswered', reason: 'it names no message' });
  }

  const into = ({ chat }: Target, body: object, signal: AbortSignal) =>
    post(
      'im/v1/messages',
      { receive_id: chat.chat, ...body },
      { receive_id_type: receiverKind(chat.chat) },
      signal,
    );

  return {
    async create(target, body, uuid, signal) {
      const named = uuid === undefined ? body : { ...body, uuid };
      const { answering, chat } = target;
      if (!isId(answering)) return into(target, named, signal);
      const reply = { ...named, ...(chat.thread === undefined ? {} : { reply_in_thread: true }) };
      try {
        return await post(`im/v1/messages/${answering}/reply`, reply, {}, signal);
      } catch (error) {
        // What belongs into a thread is not said outside of it without a word about that.
        if (!isNotThere(error) || chat.thread !== undefined) throw error;
      }
      return into(target, named, signal);
    },
    async change(id, content, signal) {
      await api.call({ method: 'PATCH', path: `im/v1/messages/${id}`, data: { content }, signal });
    },
    async remove(id, signal) {
      await api.call({ method: 'DELETE', path: `im/v1/messages/${id}`, signal });
    },
  };
}

function receiverKind(id: string): 'open_id' | 'union_id' | 'chat_id' {
  if (id.startsWith('ou_')) return 'open_id';
  return id.startsWith('on_') ? 'union_id' : 'chat_id';
}
