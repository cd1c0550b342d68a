// Messages of the linked device as the server takes them: refused where they reach nobody, otherwise
// confirmed and brought to whom they are for. Typing comes the same way.

import type { BinaryNode } from '@whiskeysockets/baileys';
import { seconds } from './answers.ts';
import type { Person } from './contact.ts';
import { flawOf, isFor, isNamed, type OutgoingMessage, parseMessage } from './device-stanzas.ts';
import type { GroupChat } from './groups.ts';
import type { OwnPhone } from './phone-chats.ts';
import type { Account, Plumbing, StanzaHandler } from './seams.ts';
import { isGroup, userOf } from './stanzas.ts';

/** A message that is encrypted for nobody in its chat: what the real server answers is not known. */
const NOBODY = '479';

export type Population = {
  readonly contactOf: (user: string) => Person | undefined;
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

/** @returns undefined where the chat is none that this server keeps for the account */
function recipientsOf(
  message: OutgoingMessage,
  account: Account,
  { contactOf, phoneOf, groupOf }: Population,
): Recipients | undefined {
  const { chat, only, groupCiphertext } = message;
  const phone = phoneOf(account);
  if (isGroup(chat)) {
    const group = groupOf(chat);
    if (group !== undefined && group.account !== account) return undefined;
    const bring = async () => {
      await group?.receives(message);
      if (only === undefined || isNamed(account, only)) await phone.receives(message);
    };
    return { reached: group !== undefined && (groupCiphertext ?? only) !== undefined, bring };
  }
  const bringCopy = async () => {
    if (isFor(message, account)) await phone.receives(message);
  };
  const user = userOf(chat);
  if (isNamed(account, user)) return { reached: isFor(message, account), bring: bringCopy };
  const contact = contactOf(user);
  const isForeign = contact !== undefined && contact.account !== account;
  if (isForeign || !/@(lid|s\.whatsapp\.net)$/.test(chat)) return undefined;
  return {
    reached: contact !== undefined && isFor(message, contact),
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
    for (const person of people ?? []) for (const state of states) person?.typing.push(state);
    return true;
  };
}
