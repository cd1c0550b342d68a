// The sign we set on people's messages while we work. A reaction is a message of its own: under an id of
// ours, stored before it leaves, in the account's pace. One that would have to wait is left out.

import type { WAMessageKey } from '@whiskeysockets/baileys';
import type { ChatId, MessageId } from '../../kernel/message/ids.ts';
import type { Reactions } from '../channel.ts';
import { SELF_CHAT, type WhatsAppName, whatsappNameOf } from './hand-over.ts';
import type { Pacer } from './pacer.ts';
import { type SentMessages, sentId } from './sent-messages.ts';
import type { Transmitter } from './transmit.ts';

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
