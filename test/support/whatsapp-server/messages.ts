// Messages of the linked device as the server takes them: refused where they reach nobody, otherwise
// confirmed and brought to whom they are for. Typing comes the same way.

import type { BinaryNode } from '@whiskeysockets/baileys';
import { seconds } from './answers.ts';
import type { ContactPhone } from './contact.ts';
import type { GroupChat } from './groups.ts';
import type { OwnPhone } from './phone-chats.ts';
import type { Account, Plumbing, StanzaHandler } from './seams.ts';
import { flawOf, isGroup, type OutgoingMessage, parseMessage, userOf } from './stanzas.ts';

/** A message that is encrypted for nobody in its chat: what the real server answers is not known. */
const NOBODY = '479';

export type Population = {
  readonly contactOf: (user: string) => ContactPhone | undefined;
  readonly phoneOf: (account: Account) => OwnPhone;
  readonly groupOf: (jid: string) => GroupChat | undefined;
};

type Recipients = {
  readonly reached: boolean;
  readonly bring: (message: OutgoingMessage) => Promise<void>;
};

export function messageHandler(population: Population, plumbing: Plumbing): StanzaHandler {
  return async (stanza, from) => {
    if (stanza.tag !== 'message') return false;
    const message = parseMessage(stanza);
    if (message === undefined) return false;
    const recipients = recipientsOf(message, from.account, population);
    if (recipients === undefined) return false;
    const flaw = flawOf(stanza);
    if (flaw !== undefined) plumbing.violation(`message ${message.id}: ${flaw}`);
    const error = recipients.reached ? {} : { error: NOBODY };
    await from.send(ackOf(stanza, { t: seconds(plumbing.now()), ...error }));
    if (recipients.reached) await recipients.bring(message);
    return true;
  };
}

function ackOf({ attrs }: BinaryNode, more: Readonly<Record<string, string>>): BinaryNode {
  const { id = '', to = '', participant } = attrs;
  const author = participant === undefined ? {} : { participant };
  return { tag: 'ack', attrs: { class: 'message', id, from: to, ...author, ...more } };
}

/** @returns undefined where the chat is none that this server keeps */
function recipientsOf(
  message: OutgoingMessage,
  account: Account,
  { contactOf, phoneOf, groupOf }: Population,
): Recipients | undefined {
  const { chat, sealed, groupCiphertext } = message;
  const phone = phoneOf(account);
  const hasPart = ({ lid, number }: Pick<Account, 'lid' | 'number'>) =>
    sealed.has(lid) || sealed.has(number);
  const bringCopy = async () => {
    if (hasPart(account)) await phone.receives(message);
  };
  if (isGroup(chat)) {
    const group = groupOf(chat);
    const bring = async () => {
      await group?.receives(message);
      if (message.only === undefined) await phone.receives(message);
    };
    return {
      reached: group !== undefined && (groupCiphertext ?? message.only) !== undefined,
      bring,
    };
  }
  const user = userOf(chat);
  if (user === account.lid || user === account.number) {
    return { reached: hasPart(account), bring: bringCopy };
  }
  if (!/@(lid|s\.whatsapp\.net)$/.test(chat)) return undefined;
  const contact = contactOf(user);
  return {
    reached: contact !== undefined && hasPart(contact),
    bring: async () => {
      await contact?.receives(message);
      await bringCopy();
    },
  };
}

const STATES = ['composing', 'paused'];

export function typingHandler({ contactOf, groupOf }: Population): StanzaHandler {
  return async ({ tag, attrs, content }) => {
    if (tag !== 'chatstate' || !Array.isArray(content)) return false;
    const states = content.map((child) => child.tag);
    if (!states.every((state) => STATES.includes(state))) return false;
    const { to = '' } = attrs;
    const people = isGroup(to) ? groupOf(to)?.members : [contactOf(userOf(to))];
    for (const person of people ?? []) for (const state of states) person?.types(state);
    return true;
  };
}
