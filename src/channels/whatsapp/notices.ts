// "typing..." in the chat while the agent works and before a message that waits for its turn. A notice
// is a courtesy: where it cannot be shown, nothing else changes.

import type { WAMessageKey, WASocket } from '@whiskeysockets/baileys';
import type { ChatId, MessageId } from '../../kernel/message/ids.ts';
import { within } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Reactions, Typing } from '../channel.ts';
import type { Pacer } from './pacer.ts';
import { SELF_CHAT, type WhatsAppName, whatsappNameOf } from './rules/jid.ts';
import { type SentMessages, sentId } from './sent-messages.ts';
import type { OpenLink, Transmitter } from './transmit.ts';

export type TypingDeps = {
  readonly link: Pick<OpenLink, 'socket'>;
  addressOf(chat: ChatId): Promise<string | undefined>;
  isPaused(chat: ChatId): Promise<boolean>;
  readonly markRead: MarkRead;
  readonly clock: Clock;
  readonly log: Logger;
};

/** Phones show one notice for about this long. */
export const TYPING_SHOWN_MS = 10_000;
const TYPING_DEADLINE_MS = 3000;

/** None of these throws. */
export type TypingNotices = Typing & {
  composing(jid: string, signal: AbortSignal): Promise<void>;
  /** Takes a notice away that may still be seen. */
  done(jid: string, signal: AbortSignal): Promise<void>;
};

export function createTypingNotices(deps: TypingDeps): TypingNotices {
  const { link, clock, log } = deps;
  /** When each address was last shown a notice, monotonic. */
  const shown = new Map<string, number>();

  async function tell(jid: string, notice: 'composing' | 'paused', signal: AbortSignal) {
    const { socket } = link;
    if (socket === undefined) return;
    const limits = { clock, ms: TYPING_DEADLINE_MS, signal };
    const send = () => sendNotice(socket, notice, jid);
    try {
      await within(limits, send, () => new Error('too slow'));
    } catch (error) {
      log.debug('whatsapp typing notice not shown', { error });
    }
  }

  async function composing(jid: string, signal: AbortSignal): Promise<void> {
    const now = clock.monotonic();
    for (const [other, at] of shown) if (now - at > 2 * TYPING_SHOWN_MS) shown.delete(other);
    shown.set(jid, now);
    await tell(jid, 'composing', signal);
  }

  return {
    intervalMs: TYPING_SHOWN_MS,
    composing,
    async done(jid, signal) {
      if (shown.delete(jid)) await tell(jid, 'paused', signal);
    },
    async show({ chat }, signal) {
      const [jid, isPaused] = await Promise.all([deps.addressOf(chat), deps.isPaused(chat)]);
      if (jid === undefined || isPaused) return;
      await deps.markRead(chat, signal);
      await composing(jid, signal);
    },
  };
}

const sendNotice = (socket: WASocket, notice: 'composing' | 'paused', jid: string) =>
  socket.sendPresenceUpdate(notice, jid);

// Marks as read what the agent works on or answers, as a person would; a mark that fails is left out.

/** Takes the keys of what came in this chat and was not read yet. */
export type TakeUnread = (chat: ChatId) => Promise<readonly WAMessageKey[]>;

export type ReadReceiptsDeps = {
  readonly link: Pick<OpenLink, 'socket'>;
  readonly unread: TakeUnread;
  /** `channels.whatsapp.readReceipts`. */
  readonly isWanted: boolean;
  readonly clock: Clock;
  readonly log: Logger;
};

/** The library asks for the privacy settings first, and then follows them. */
const RECEIPT_DEADLINE_MS = 5000;

/** Never throws. */
export type MarkRead = (chat: ChatId, signal: AbortSignal) => Promise<void>;

export function createReadReceipts(deps: ReadReceiptsDeps): MarkRead {
  const { link, clock, log } = deps;
  return async (chat, signal) => {
    // What cannot be marked now stays unread until the next time.
    const { socket } = link;
    if (!deps.isWanted || socket === undefined) return;
    const keys = await deps.unread(chat);
    if (keys.length === 0) return;
    try {
      const limits = { clock, ms: RECEIPT_DEADLINE_MS, signal };
      await within(
        limits,
        () => socket.readMessages([...keys]),
        () => new Error('too slow'),
      );
    } catch (error) {
      log.info('whatsapp messages not marked as read', { count: keys.length, error });
    }
  };
}

// The sign we set on people's messages while we work. A reaction is a message of its own: under an id of
// ours, stored before it leaves, in the account's pace. One that would have to wait is left out.

export type ReactionDeps = {
  readonly transmitter: Transmitter;
  readonly sent: SentMessages;
  readonly pacer: Pacer;
  /** The address of a chat that may be written to. @throws DeliveryError not_sent */
  admit(chat: ChatId): Promise<string>;
  /** The address of a chat, whoever writes there. */
  addressOf(chat: ChatId): Promise<string | undefined>;
};

export function createReactions(deps: ReactionDeps): Pick<Reactions, 'react'> {
  const { transmitter, sent, pacer, addressOf } = deps;
  const paced = (chat: ChatId) => ({ chat, isFirstContact: false, isAnswer: true });

  async function set(to: MessageId, name: WhatsAppName, text: string, signal: AbortSignal) {
    const { chat } = name;
    const jid = await deps.admit(chat);
    const id = setIdOf(to);
    if ((await sent.get(id)) === undefined && !(await pacer.takeFree(paced(chat)))) return;
    const content = { react: { text, key: await keyOf(name, jid) } };
    await transmitter.send({ id, chat, jid, content }, signal);
  }

  /** Also where the owner has begun to write there: nothing of ours is to stay. */
  async function clear(to: MessageId, name: WhatsAppName, signal: AbortSignal) {
    const { chat } = name;
    const jid = (await sent.get(setIdOf(to)))?.jid;
    if (jid === undefined) return;
    const rows = await pacer.admit(paced(chat), signal, async () => undefined);
    const content = { react: { text: '', key: await keyOf(name, jid) } };
    await transmitter.send({ id: sentId(to, 'no sign'), chat, jid, content, rows }, signal);
  }

  async function keyOf({ chat, id, author }: WhatsAppName, jid: string): Promise<WAMessageKey> {
    const key = { remoteJid: jid, id, fromMe: chat === SELF_CHAT };
    const participant = author === chat ? undefined : await addressOf(author);
    return participant === undefined ? key : { ...key, participant };
  }

  return {
    async react(to, emoji, signal) {
      const name = whatsappNameOf(to);
      if (name === undefined) return;
      if (emoji === undefined) await clear(to, name, signal);
      else await set(to, name, emoji, signal);
    },
  };
}

const setIdOf = (to: MessageId) => sentId(to, 'sign');
