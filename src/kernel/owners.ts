// Where the owners get notices and questions: on the channel they used last, if it is durable; else
// on one they were paired on; else in the notices of the web page. A notice goes to the account
// that it is about, or to the channel the owner chose, and into no conversation of the page. An
// alert needs a person: it is sent at once, and once an hour per text. A note can wait for the end
// of quiet hours.

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Channel, ChannelStatus } from '../channels/channel.ts';
import { jsonRow, place, type RowShape } from '../lib/json/json.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { MessageBus } from './bus/bus.ts';
import type { KeyValueStore } from './bus/store/store.ts';
import {
  type AccountName,
  ALERT,
  accountName,
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
} from './message/ids.ts';
import type { ChatRef } from './message/message.ts';
import type { Pairing } from './people/pairing.ts';

/** The chat of the web page for notices without another known channel. */
export const NOTICES: ChatRef = {
  channel: channelName('web'),
  account: DEFAULT_ACCOUNT,
  chat: chatId('notices'),
};
/** Its chats end with the process that shows them. */
const TERMINAL = channelName('terminal');
const KEY = 'owner-door';

type OwnerChatsDeps = {
  readonly state: KeyValueStore;
  readonly pairing: Pairing;
  /** The account chosen for notices in the current configuration; empty: none. */
  chosen?(): string;
  /** Changes when another process wrote. */
  revision?(): number;
};

/** Whether an account may carry a message now. */
type IsFit = (account: AccountName) => boolean;

interface OwnerChats {
  /** An owner wrote here. */
  wroteIn(chat: ChatRef): Promise<void>;
  /** The chat for questions to the owner, with an account for which `isFit` is true. */
  chat(isFit: IsFit): Promise<ChatRef>;
  /** The chat for notices outside the owner's conversations. `about`: the account it concerns. */
  notices(isFit: IsFit, about?: AccountName): Promise<ChatRef>;
}

export function createOwnerChats({ state, pairing, chosen, revision }: OwnerChatsDeps): OwnerChats {
  let written: readonly ChatRef[] | undefined;
  let known: number | undefined;

  /** The newest chat with each account, newest first; read at every message of an owner. */
  async function last(): Promise<readonly ChatRef[]> {
    // Another process may have heard from an owner.
    const current = revision?.();
    if (current !== known) written = undefined;
    known = current;
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
  // Earlier versions stored only one chat.
  return 'channel' in row ? [row] : row;
}

const REPEAT_MS = 3_600_000;
const MAX_REMEMBERED = 50;

/**
 * `troubled`: the account with the problem, which does not carry the text; undefined: none.
 * `about`: the account that the text is about, which carries it if it reaches the owner.
 */
export type Alert = (troubled: AccountName | undefined, text: string, about?: AccountName) => void;

/** `about`: the account that the text is about. */
type TellOwner = (text: string, about?: AccountName) => void;

/**
 * Keeps a note for the end of the owner's quiet hours. False: there are no quiet hours now, send
 * it.
 */
export type KeepNote = (text: string, chat: ChatRef) => Promise<boolean>;

export interface Owners {
  /** An owner wrote here. */
  readonly wroteIn: OwnerChats['wroteIn'];
  /** The chat for messages to an owner. */
  chat(): Promise<ChatRef>;
  /**
   * The chat for questions to an owner: never by mail, because the sender of a mail may be forged.
   */
  askChat(): Promise<ChatRef>;
  /** The chat for notices outside the owner's conversations; `about`: the account it concerns. */
  noticeChat(about?: AccountName): Promise<ChatRef>;
  readonly alert: Alert;
  readonly tell: TellOwner;
  /** Registers what keeps notes in quiet hours; without it every note is sent at once. */
  keepNotes(keep: KeepNote): void;
}

type OwnersDeps = {
  readonly chats: OwnerChats;
  readonly channels: ChannelDirectory;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly clock: Clock;
  readonly log: Logger;
  isChat(account: AccountName): boolean;
};

export function createOwners({ chats, channels, bus, clock, log, isChat }: OwnersDeps): Owners {
  const lastAt = new Map<string, number>();
  const noticeChat = (about?: AccountName) => chats.notices(channels.isThere, about);
  let keep: KeepNote = async () => false;

  function isRepeated(key: string): boolean {
    const now = clock.now();
    if (now - (lastAt.get(key) ?? Number.NEGATIVE_INFINITY) < REPEAT_MS) return true;
    lastAt.delete(key);
    lastAt.set(key, now);
    for (const oldest of lastAt.keys()) {
      if (lastAt.size <= MAX_REMEMBERED) break;
      lastAt.delete(oldest);
    }
    return false;
  }

  const alert: Alert = (troubled, text, about) => {
    if (isRepeated(`${troubled}\n${text}`)) return;
    log.warn('owner notified', { channel: troubled });
    // A notice about no account waits for the owner's channel to connect again.
    const isThere = troubled === undefined ? channels.isThere : channels.isRunning;
    const isFit = (name: AccountName) => name !== troubled && isThere(name);
    const markdown = troubled === undefined ? text : `**${troubled}:** ${text}`;
    chats
      .notices(isFit, about)
      .then((chat) => bus.send({ id: messageId(`${ALERT}${randomUUID()}`), chat, markdown }))
      .catch((error) => log.error('notice to the owner failed', { channel: troubled, error }));
  };

  async function note(text: string, about?: AccountName): Promise<void> {
    if (!(await keep(text, await noticeChat(about)))) alert(undefined, text, about);
  }

  return {
    wroteIn: chats.wroteIn,
    chat: () => chats.chat(channels.isThere),
    askChat: () => chats.chat((name) => channels.isThere(name) && isChat(name)),
    noticeChat,
    alert,
    tell(text, about) {
      note(text, about).catch((error) => log.error('notice to the owner failed', { error }));
    },
    keepNotes(keeper) {
      keep = keeper;
    },
  };
}

// The running channels, by account: written by the channel manager, read by all other code. It
// exists before any of them and is empty until they start.

export interface ChannelDirectory {
  get(name: AccountName): Channel | undefined;
  status(name: AccountName): ChannelStatus | undefined;
  /** Carries messages now. */
  isRunning(name: AccountName): boolean;
  /** Carries messages now or soon: it was started, and no person has to act first. */
  isThere(name: AccountName): boolean;
}

/** The manager's side. */
export interface ChannelRegister extends ChannelDirectory {
  put(name: AccountName, channel: Channel): void;
  report(name: AccountName, status: ChannelStatus): void;
  remove(name: AccountName): void;
}

export function createChannelDirectory(): ChannelRegister {
  const channels = new Map<AccountName, Channel>();
  const statuses = new Map<AccountName, ChannelStatus>();
  return {
    get: (name) => channels.get(name),
    status: (name) => statuses.get(name),
    isRunning: (name) => ['running', 'elsewhere'].includes(statuses.get(name)?.kind ?? ''),
    isThere: (name) => (statuses.get(name)?.kind ?? 'stopped') !== 'stopped',
    put: (name, channel) => void channels.set(name, channel),
    report: (name, status) => void statuses.set(name, status),
    remove(name) {
      channels.delete(name);
      statuses.delete(name);
    },
  };
}
