// Groups: their metadata for whoever asks, what members write, and how each reads what the linked
// device sent.

import { randomInt } from 'node:crypto';
import { type BinaryNode, getBinaryNodeChild } from '@whiskeysockets/baileys';
import { failedResult, seconds } from './answers.ts';
import { ChatView } from './chat-view.ts';
import type { Person } from './contact.ts';
import type { Contact, Group, SeenMessage } from './contract.ts';
import { isNamed, type OutgoingMessage, sealedFor } from './device-stanzas.ts';
import { contentOf, newMessageId, textMessage } from './message-content.ts';
import type { Account, LinkedDevice, StanzaHandler } from './seams.ts';
import { BY_LID, groupMessage, lidJid, numberJid } from './stanzas.ts';

type GroupDeps = {
  readonly account: Account;
  readonly members: readonly Person[];
  readonly subject: string;
  readonly now: () => number;
  readonly personOf: (contact: Contact) => Person | undefined;
};

type SayOptions = Parameters<Group['says']>[2];

export class GroupChat implements Group {
  readonly jid = `120363${randomInt(1e11, 1e12)}@g.us`;
  readonly account: Account;
  readonly members: Person[];
  readonly subject: string;
  readonly createdAt: number;
  asked = 0;
  isAccountIn = true;
  readonly #now: () => number;
  readonly #personOf: GroupDeps['personOf'];
  readonly #views: Map<string, ChatView>;
  /** Whose sender key the linked device has. */
  readonly #knownTo = new Map<string, LinkedDevice | undefined>();

  constructor({ account, members, subject, now, personOf }: GroupDeps) {
    this.account = account;
    this.members = [...members];
    this.#personOf = personOf;
    this.subject = subject;
    this.createdAt = now();
    this.#now = now;
    this.#views = new Map(members.map(({ lid }) => [lid, new ChatView(now)]));
  }

  async says(contact: Contact, text: string, options: SayOptions = {}): Promise<string> {
    const { addressing = BY_LID, device = 0, at = this.#now(), mentions, quoting } = options;
    const member = this.members.find(({ lid }) => lid === contact.lid);
    if (member === undefined) throw new Error(`${contact.name} is no member of ${this.subject}`);
    const { line, mail } = member.handset(device);
    const [id, message, self] = [
      newMessageId(),
      options.message ?? textMessage(text, quoting, mentions),
      lidJid(member, device),
    ];
    const { enc, senderKey } = await line.sealForGroup(this.jid, self, message);
    const isNew = this.#knownTo.get(self) !== this.account.device;
    this.#knownTo.set(self, this.account.device);
    const sender = { id, at, from: member, device, addressing, group: this.jid };
    const envelope = (content: BinaryNode[]) => groupMessage(sender, content);
    const sealed = isNew ? [await line.seal(senderKey), enc] : [enc];
    await mail.post({ id, message: { ...message, ...senderKey }, envelope }, sealed);
    return id;
  }

  async joined(contact: Contact): Promise<void> {
    const person = this.#personOf(contact);
    if (person === undefined) throw new Error(`${contact.name} has no account`);
    this.members.push(person);
    this.#views.set(person.lid, new ChatView(this.#now));
    await this.#tell({ tag: 'add', attrs: {}, content: [participant(person)] });
  }

  async removesAccount(): Promise<void> {
    this.isAccountIn = false;
    await this.#tell({ tag: 'remove', attrs: {}, content: [participant(this.account)] });
  }

  async #tell(change: BinaryNode): Promise<void> {
    const id = newMessageId();
    const by = lidJid(this.members[0] ?? this.account);
    const t = seconds(this.#now());
    const attrs = { from: this.jid, type: 'w:gp2', id, t, participant: by };
    await this.account.deliver({ tag: 'notification', attrs, content: [change] });
  }

  seenBy({ lid, name }: Contact): readonly SeenMessage[] {
    const view = this.#views.get(lid);
    if (view === undefined) throw new Error(`${name} is no member of ${this.subject}`);
    return view.seen;
  }

  /** A message of the linked device, for all members or for one that asked again. */
  async receives(message: OutgoingMessage): Promise<void> {
    const { id, only, groupCiphertext: ciphertext } = message;
    for (const member of this.members) {
      if (only !== undefined && !isNamed(member, only)) continue;
      const delivery = {
        id,
        sealed: sealedFor(message, member),
        group: { jid: this.jid, ciphertext },
        receiptFrom: { from: this.jid, participant: lidJid(member) },
      };
      const { reader } = member.handset(0);
      await reader.read(delivery, (content) =>
        this.#views.get(member.lid)?.arrived(id, contentOf(content)),
      );
    }
  }
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
    if (group === undefined) await from.send(failedResult(stanza, 404, 'item-not-found'));
    else if (!group.isAccountIn) await from.send(failedResult(stanza, 403, 'forbidden'));
    else {
      group.asked += 1;
      await from.send(answer(stanza, to, [metadata(group)]));
    }
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
