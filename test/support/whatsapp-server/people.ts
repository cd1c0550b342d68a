// Everybody who writes with the accounts of the server: contacts, groups and the accounts' own
// phones, found by number or LID; what the plumbing asks of them in one place.

import { type ContactPhone, createContact } from './contact.ts';
import { type PastMessage, sendFirstSync } from './first-sync.ts';
import { createGroup, type GroupChat, groupHandler } from './groups.ts';
import { linkedBundle } from './line.ts';
import { createMediaHost } from './media-host.ts';
import { messageHandler, type Population, typingHandler } from './messages.ts';
import { createOwnPhone, type OwnPhone } from './phone-chats.ts';
import { receiptHandler } from './receipts.ts';
import type { Account, Directory, People, Plumbing } from './seams.ts';
import type { Letter } from './sent-mail.ts';

export function createPeople(plumbing: Plumbing): People {
  const now = () => plumbing.now();
  const contacts = new Map<string, ContactPhone>();
  const phones = new Map<Account, OwnPhone>();
  const groups: GroupChat[] = [];
  const owesFirstSync = new Set<Account>();
  const past = new Map<Account, PastMessage[]>();
  const media = createMediaHost();

  const contactOf = (user: string) => {
    const contact = contacts.get(user);
    return contact?.hasLeft === true ? undefined : contact;
  };
  const phoneOf = (account: Account) => {
    const phone = phones.get(account) ?? createOwnPhone({ account, contactOf, now });
    phones.set(account, phone);
    return phone;
  };
  const groupOf = (jid: string) => groups.find((group) => group.jid === jid);
  const population: Population = { contactOf, phoneOf, groupOf };
  const ownPhone = (user: string) => {
    const account = plumbing.account(user);
    return account === undefined ? undefined : phoneOf(account);
  };
  return {
    chats: (account) => phoneOf(account).chats,
    async contact(account, { number, name }) {
      const assigned = plumbing.assignNumber(number);
      const who = { ...assigned, name: name ?? `Person ${assigned.number.slice(-4)}` };
      const leaveToPhone = ({ id, at, message }: Letter & { readonly at: number }) =>
        void past.set(account, [...(past.get(account) ?? []), { id, at, from: who, message }]);
      const contact = createContact({ account, who, now, leaveToPhone });
      contacts.set(contact.number, contact).set(contact.lid, contact);
      return contact;
    },
    async group(account, members, subject = 'Group') {
      const known = members.flatMap(({ lid }) => contacts.get(lid) ?? []);
      const group = createGroup({ account, members: known, subject, now });
      groups.push(group);
      return group;
    },
    directory: directoryOf(population, plumbing),
    handlers: [
      messageHandler(population, plumbing),
      receiptHandler((user) => contacts.get(user) ?? ownPhone(user)),
      typingHandler(population),
      groupHandler(groups),
      media.handler,
    ],
    async paired(account) {
      owesFirstSync.add(account);
    },
    async online(account) {
      if (!owesFirstSync.delete(account)) return;
      await sendFirstSync({
        account,
        mail: phoneOf(account).handset.mail,
        acquaintances: [...new Set(contacts.values())].filter((one) => one.account === account),
        past: past.get(account) ?? [],
        now: now(),
      });
    },
    phoneIdentity: (account) => phoneOf(account).handset.line.device.identity,
    get mediaCertificate() {
      return media.certificate;
    },
    [Symbol.asyncDispose]: () => media[Symbol.asyncDispose](),
  };
}

function directoryOf({ contactOf, phoneOf }: Population, plumbing: Plumbing): Directory {
  return {
    find(user) {
      const contact = contactOf(user);
      const known = contact ?? plumbing.account(user);
      return known && { number: known.number, lid: known.lid, devices: contact?.devices ?? [0] };
    },
    async keyBundle(user, device) {
      const account = plumbing.account(user);
      // Baileys writes to itself where it is in a group by LID.
      if (account?.device?.id === device) return linkedBundle(account, account.device);
      const contact = contactOf(user);
      if (contact?.devices.includes(device)) return contact.handset(device).line.device.bundle();
      if (account === undefined || device !== 0) return undefined;
      return phoneOf(account).handset.line.device.bundle();
    },
  };
}
