// Everybody who writes with the accounts of the server: contacts, groups and the accounts' own
// phones, found by number or LID; what the plumbing asks of them in one place.

import type { KeyPair, proto } from '@whiskeysockets/baileys';
import { Person } from './contact.ts';
import type { Contact, ContactOptions } from './contract.ts';
import { type PastMessage, sendFirstSync } from './first-sync.ts';
import { GroupChat, groupHandler } from './groups.ts';
import { linkedBundle } from './line.ts';
import { mediaAgainHandler } from './media-again.ts';
import { createMediaHost, type PhoneFiles } from './media-host.ts';
import { messageHandler, type Population, typingHandler } from './messages.ts';
import { createOwnPhone, type OwnPhone } from './phone-chats.ts';
import { type Author, receiptHandler } from './receipts.ts';
import type {
  Account,
  Directory,
  KeyBundle,
  People,
  PhoneChats,
  Plumbing,
  StanzaHandler,
} from './seams.ts';

export function createPeople(plumbing: Plumbing): People {
  return new Society(plumbing);
}

class Society implements People, Population {
  readonly handlers: readonly StanzaHandler[];
  readonly directory: Directory;
  readonly #plumbing: Plumbing;
  readonly #media = createMediaHost();
  /** By number and by LID. */
  readonly #contacts = new Map<string, Person>();
  readonly #phones = new Map<Account, OwnPhone>();
  readonly #groups: GroupChat[] = [];
  readonly #past = new Map<Account, PastMessage[]>();
  readonly #owesFirstSync = new Set<Account>();

  constructor(plumbing: Plumbing) {
    this.#plumbing = plumbing;
    this.directory = {
      find: (user) => this.#find(user),
      keyBundle: async (user, device) => this.#keyBundle(user, device),
    };
    this.handlers = [
      messageHandler(this, plumbing),
      mediaAgainHandler(this, this.#media, plumbing),
      receiptHandler((user) => this.#authorOf(user)),
      typingHandler(this),
      groupHandler(this.#groups),
      this.#media.handler,
    ];
  }

  chats(account: Account): PhoneChats {
    return this.phoneOf(account).chats;
  }

  async contact(account: Account, { number, name, saved }: ContactOptions): Promise<Contact> {
    const assigned = this.#plumbing.assignNumber(number);
    const who = { ...assigned, name: name ?? `Person ${assigned.number.slice(-4)}` };
    const past = this.#past.get(account) ?? [];
    this.#past.set(account, past);
    const person = new Person({
      account,
      who,
      saved,
      now: this.#now,
      leaveToPhone: ({ id, at, message }) => void past.push({ id, at, from: who, message }),
    });
    this.#contacts.set(person.number, person).set(person.lid, person);
    return person;
  }

  async group(
    account: Account,
    members: readonly Contact[],
    subject = 'Group',
  ): Promise<GroupChat> {
    const known = members.flatMap(({ lid }) => this.#contacts.get(lid) ?? []);
    const personOf = ({ lid }: Contact) => this.#contacts.get(lid);
    const group = new GroupChat({ account, members: known, subject, now: this.#now, personOf });
    this.#groups.push(group);
    return group;
  }

  async paired(account: Account): Promise<void> {
    this.#owesFirstSync.add(account);
  }

  async online(account: Account): Promise<void> {
    if (!this.#owesFirstSync.delete(account)) return;
    const people = new Set(this.#contacts.values());
    await sendFirstSync({
      account,
      mail: this.phoneOf(account).handset.mail,
      acquaintances: [...people].filter((person) => person.account === account),
      past: this.#past.get(account) ?? [],
      now: this.#now(),
    });
  }

  phoneIdentity(account: Account): KeyPair {
    return this.phoneOf(account).handset.line.device.identity;
  }

  get mediaCertificate(): string {
    return this.#media.certificate;
  }

  keep(ciphertext: Buffer) {
    return this.#media.keep(ciphertext);
  }

  forgetMedia(phone?: PhoneFiles): void {
    this.#media.forget(phone);
  }

  refuseUploads(refused: boolean | URL): void {
    this.#media.refuses = refused;
  }

  readonly contactOf = (user: string): Person | undefined => {
    const person = this.#contacts.get(user);
    return person?.hasLeft === true ? undefined : person;
  };

  readonly phoneOf = (account: Account): OwnPhone => {
    const { contactOf } = this;
    const phone =
      this.#phones.get(account) ?? createOwnPhone({ account, contactOf, now: this.#now });
    this.#phones.set(account, phone);
    return phone;
  };

  readonly messageOf = (user: string, id: string): proto.IMessage | undefined =>
    this.#contacts.get(user)?.wrote(id);

  readonly groupOf = (jid: string): GroupChat | undefined =>
    this.#groups.find((group) => group.jid === jid);

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#media[Symbol.asyncDispose]());
  }

  readonly #now = (): number => this.#plumbing.now();

  /** Receipts come even for somebody who left since. */
  #authorOf(user: string): Author | undefined {
    const account = this.#plumbing.account(user);
    return this.#contacts.get(user) ?? (account && this.phoneOf(account));
  }

  #find(user: string): ReturnType<Directory['find']> {
    const person = this.contactOf(user);
    const known = person ?? this.#plumbing.account(user);
    return known && { number: known.number, lid: known.lid, devices: person?.devices ?? [0] };
  }

  #keyBundle(user: string, device: number): KeyBundle | undefined {
    const account = this.#plumbing.account(user);
    // Baileys writes to itself where it is in a group by LID.
    if (account?.device?.id === device) return linkedBundle(account, account.device);
    const person = this.contactOf(user);
    if (person?.devices.includes(device)) return person.handset(device).line.device.bundle();
    if (account === undefined || device !== 0) return undefined;
    return this.phoneOf(account).handset.line.device.bundle();
  }
}
