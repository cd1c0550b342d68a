// Groups: their metadata for whoever asks, what members write, and how each reads what the linked
// device sent.

import { randomInt } from 'node:crypto';
import { type BinaryNode, getBinaryNodeChild } from '@whiskeysockets/baileys';
import { failedResult, seconds } from './answers.ts';
import { type ChatView, createChatView } from './chat-view.ts';
import type { ContactPhone } from './contact.ts';
import type { Contact, Group } from './contract.ts';
import { isNamed, type OutgoingMessage, sealedFor } from './device-stanzas.ts';
import { contentOf, newMessageId, textMessage } from './message-content.ts';
import type { Account, LinkedDevice, StanzaHandler } from './seams.ts';
import { BY_LID, groupMessage, lidJid, numberJid } from './stanzas.ts';

/** What the other parts need of a group. */
export interface GroupChat extends Group {
  readonly account: Account;
  readonly members: readonly ContactPhone[];
  readonly subject: string;
  readonly createdAt: number;
  /** A message of the linked device, for all members or for one that asked again. */
  receives(message: OutgoingMessage): Promise<void>;
}

type GroupDeps = {
  readonly account: Account;
  readonly members: readonly ContactPhone[];
  readonly subject: string;
  readonly now: () => number;
};

export function createGroup({ account, members, subject, now }: GroupDeps): GroupChat {
  const jid = `120363${randomInt(1e11, 1e12)}@g.us`;
  const views = new Map(members.map((member) => [member.lid, createChatView(now)]));
  /** Whose sender key the linked device has. */
  const knownTo = new Map<string, LinkedDevice | undefined>();
  const viewOf = ({ lid, name }: Pick<Contact, 'lid' | 'name'>): ChatView => {
    const view = views.get(lid);
    if (view === undefined) throw new Error(`${name} is no member of ${subject}`);
    return view;
  };
  return {
    jid,
    account,
    members,
    subject,
    createdAt: now(),
    async says(contact, text, { addressing = BY_LID, device = 0, at = now() } = {}) {
      const member = members.find(({ lid }) => lid === contact.lid);
      if (member === undefined) throw new Error(`${contact.name} is no member of ${subject}`);
      const { line, mail } = member.handset(device);
      const [id, message, self] = [newMessageId(), textMessage(text), lidJid(member, device)];
      const { enc, senderKey } = await line.sealForGroup(jid, self, message);
      const isNew = knownTo.get(self) !== account.device;
      knownTo.set(self, account.device);
      const from = { from: member, device, addressing };
      await mail.post(
        {
          id,
          message: { ...message, ...senderKey },
          envelope: (content) => groupMessage({ ...from, id, at, group: jid }, content),
        },
        isNew ? [await line.seal(senderKey), enc] : [enc],
      );
      return id;
    },
    seenBy: (member) => viewOf(member).seen,
    async receives(message) {
      const { id, only, groupCiphertext: ciphertext } = message;
      for (const member of members) {
        if (only !== undefined && !isNamed(member, only)) continue;
        const delivery = {
          id,
          sealed: sealedFor(message, member),
          group: { jid, ciphertext },
          receiptFrom: { from: jid, participant: lidJid(member) },
        };
        await member
          .handset(0)
          .reader.read(delivery, (content) => viewOf(member).arrived(id, contentOf(content)));
      }
    },
  };
}

/** Answers what a linked device asks about the groups of its account. */
export function groupHandler(groups: readonly GroupChat[]): StanzaHandler {
  return async (stanza, from) => {
    if (stanza.tag !== 'iq' || stanza.attrs['xmlns'] !== 'w:g2') return false;
    if (stanza.attrs['type'] !== 'get') return false;
    const own = groups.filter((group) => group.account === from.account);
    const { to = '' } = stanza.attrs;
    if (to === '@g.us' && getBinaryNodeChild(stanza, 'participating') !== undefined) {
      const content = own.map(metadata);
      await from.send(answer(stanza, to, [{ tag: 'groups', attrs: {}, content }]));
      return true;
    }
    if (getBinaryNodeChild(stanza, 'query') === undefined) return false;
    const group = own.find(({ jid }) => jid === to);
    await from.send(
      group === undefined
        ? failedResult(stanza, 404, 'item-not-found')
        : answer(stanza, to, [metadata(group)]),
    );
    return true;
  };
}

const answer = (iq: BinaryNode, from: string, content: BinaryNode[]): BinaryNode => ({
  tag: 'iq',
  attrs: { id: iq.attrs['id'] ?? '', from, type: 'result' },
  content,
});

function metadata({ jid, subject, createdAt, members, account }: GroupChat): BinaryNode {
  const [creator] = members;
  const by = lidJid(creator ?? account);
  const t = seconds(createdAt);
  const attrs = { id: jid.split('@')[0] ?? '', subject, creation: t, creator: by, s_t: t, s_o: by };
  const people = [...members.map((member) => participant(member)), participant(account)];
  return {
    tag: 'group',
    attrs: { ...attrs, addressing_mode: 'lid', size: String(people.length) },
    content: people,
  };
}

const participant = (who: Pick<Contact, 'number' | 'lid'>): BinaryNode => ({
  tag: 'participant',
  attrs: { jid: lidJid(who), phone_number: numberJid(who) },
});
