// Which messages of a chat were not marked as read yet. In memory only: after a restart the phone
// shows them as unread, and nothing is lost by that.

import type { WAMessageKey } from '@whiskeysockets/baileys';
import type { ChatId } from '../../core/ids.ts';

export interface Unread {
  note(chat: ChatId, key: WAMessageKey): void;
  /** Oldest first. */
  of(chat: ChatId): readonly WAMessageKey[];
  /** They were marked as read; without keys: all of the chat. */
  forget(chat: ChatId, keys?: readonly WAMessageKey[]): void;
}

const MAX_PER_CHAT = 100;
const MAX_CHATS = 500;

export function createUnread(): Unread {
  const chats = new Map<ChatId, readonly WAMessageKey[]>();

  return {
    note(chat, key) {
      const keys = [...(chats.get(chat) ?? []), key].slice(-MAX_PER_CHAT);
      chats.delete(chat);
      chats.set(chat, keys);
      const [oldest] = chats.keys();
      if (chats.size > MAX_CHATS && oldest !== undefined) chats.delete(oldest);
    },
    of: (chat) => chats.get(chat) ?? [],
    forget(chat, keys) {
      const read = new Set(keys?.map(({ id }) => id));
      const left =
        keys === undefined ? [] : (chats.get(chat) ?? []).filter((one) => !read.has(one.id));
      if (left.length === 0) chats.delete(chat);
      else chats.set(chat, left);
    },
  };
}
