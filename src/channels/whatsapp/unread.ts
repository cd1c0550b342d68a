// Which messages of a chat were not marked as read yet. In memory only: after a restart the phone
// shows them as unread, and nothing is lost by that.

import type { WAMessageKey } from '@whiskeysockets/baileys';
import type { ChatId } from '../../core/ids.ts';

export interface Unread {
  note(chat: ChatId, key: WAMessageKey): void;
  /** Takes out what is to be marked as read in a chat of these names, oldest first. */
  take(names: readonly ChatId[]): readonly WAMessageKey[];
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
    take(names) {
      const keys = names.flatMap((name) => chats.get(name) ?? []);
      for (const name of names) chats.delete(name);
      return keys;
    },
  };
}
