// Where the owner is reached: the channel they used last, as far as it lasts; else one they were paired
// on; else the notices of the web page. A notice goes to the account that it is about, or to the channel
// the owner chose, and into no conversation of the page.

import { z } from 'zod';
import type { Pairing } from '../features/people/pairing.ts';
import type { KeyValueStore } from '../kernel/bus/store/store.ts';
import { type AccountName, accountName } from '../kernel/message/account.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from '../kernel/message/ids.ts';
import type { ChatRef } from '../kernel/message/message.ts';
import { jsonRow, place, type RowShape } from '../lib/json/json.ts';

/** The chat of the web page that holds notices for which no other door is known. */
export const NOTICES: ChatRef = {
  channel: channelName('web'),
  account: DEFAULT_ACCOUNT,
  chat: chatId('notices'),
};
/** Its chats end with the process that shows them. */
const TERMINAL = channelName('terminal');
const KEY = 'owner-door';

export type OwnerDoorDeps = {
  readonly state: KeyValueStore;
  readonly pairing: Pairing;
  /** The account that notices go to, as configured now; empty: none was chosen. */
  chosen?(): string;
};

/** Whether an account may carry a message now. */
export type IsFit = (account: AccountName) => boolean;

export interface OwnerDoor {
  /** An owner wrote here. */
  wroteIn(chat: ChatRef): Promise<void>;
  /** The chat to ask the owner something in, with an account of which `isFit` is true. */
  chat(isFit: IsFit): Promise<ChatRef>;
  /** Where the owner is told something outside their conversations. `about`: the account it concerns. */
  notices(isFit: IsFit, about?: AccountName): Promise<ChatRef>;
}

export function createOwnerDoor({ state, pairing, chosen }: OwnerDoorDeps): OwnerDoor {
  let written: readonly ChatRef[] | undefined;

  /** The newest chat with each account, newest first; asked at every message of an owner. */
  async function last(): Promise<readonly ChatRef[]> {
    written ??= chatsIn(await state.get(KEY));
    return written;
  }

  async function paired(): Promise<readonly ChatRef[]> {
    const { approved } = await pairing.list();
    return approved.flatMap(({ role, channel, chat }) =>
      role === 'owner' && chat !== undefined
        ? [{ channel: channelName(channel), account: DEFAULT_ACCOUNT, chat: chatId(chat) }]
        : [],
    );
  }

  return {
    async wroteIn(chat) {
      if (chat.channel === TERMINAL) return;
      const known = await last();
      if (JSON.stringify(known[0]) === JSON.stringify(chat)) return;
      written = [chat, ...known.filter((one) => accountName(one) !== accountName(chat))];
      await state.set(KEY, JSON.stringify(written));
    },
    async chat(isFit) {
      const known = [...(await last()), ...(await paired())];
      return known.find((one) => isFit(accountName(one))) ?? NOTICES;
    },
    async notices(isFit, about) {
      const wanted = chosen?.() ?? '';
      if (wanted === NOTICES.channel) return NOTICES;
      const known = [...(await last()), ...(await paired())].filter(
        (one) => one.channel !== NOTICES.channel && isFit(accountName(one)),
      );
      const at = (account: string | undefined) => known.find((one) => accountName(one) === account);
      const found = at(wanted) ?? at(about) ?? known[0];
      if (found === undefined) return NOTICES;
      // A topic, or the thread of a mail, is a conversation.
      const { thread: _topic, ...chat } = found;
      return chat;
    },
  };
}

const CHATS: RowShape<ChatRef | readonly ChatRef[]> = z.union([place, z.array(place)]);

function chatsIn(stored: string | undefined): readonly ChatRef[] {
  const row = jsonRow(stored ?? '[]', CHATS) ?? [];
  // Once it was one chat alone.
  return 'channel' in row ? [row] : row;
}
