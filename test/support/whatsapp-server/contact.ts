// A person who writes with an account: their side of the chat, told by what their phone could
// decrypt. Stanzas come by messages.ts and receipts.ts, groups are in groups.ts.

import type { proto } from '@whiskeysockets/baileys';
import { createChatView } from './chat-view.ts';
import type { Contact, WriteOptions } from './contract.ts';
import { type OutgoingMessage, sealedFor } from './device-stanzas.ts';
import { createHandset, type Handset } from './handset.ts';
import { contentOf, newMessageId, textMessage } from './message-content.ts';
import type { Author } from './receipts.ts';
import type { Account } from './seams.ts';
import type { Letter } from './sent-mail.ts';
import { BY_LID, directMessage, type Identity, lidJid, numberJid } from './stanzas.ts';

/** What the other parts need of a contact. */
export interface ContactPhone extends Contact, Author {
  readonly account: Account;
  readonly hasLeft: boolean;
  readonly devices: readonly number[];
  /** Made where the person had no such device. */
  handset(device: number): Handset;
  /** A message of the linked device in the chat of the two. */
  receives(message: OutgoingMessage): Promise<void>;
  /** The owner of the account wrote by hand. */
  getsFromOwner(id: string, text: string): void;
  types(state: string): void;
}

type ContactDeps = {
  readonly account: Account;
  readonly who: Identity;
  readonly now: () => number;
  /** Where the account has no linked device: its phone alone gets the message. */
  readonly leaveToPhone: (letter: Letter & { readonly at: number }) => void;
};

export function createContact({ account, who, now, leaveToPhone }: ContactDeps): ContactPhone {
  const handsets = new Map<number, Handset>();
  const view = createChatView(now);
  const typing: string[] = [];
  const delivered = new Set<string>();
  const read = new Set<string>();
  let hasLeft = false;
  const handset = (device: number) => {
    const known = handsets.get(device);
    if (known !== undefined) return known;
    const made = createHandset(account, { device, now, confirms: true });
    handsets.set(device, made);
    return made;
  };
  const phone = handset(0);
  const mailWith = (id: string) =>
    [...handsets.values()].find(({ mail }) => mail.has(id))?.mail ?? phone.mail;
  return {
    ...who,
    account,
    handset,
    get devices() {
      return [...handsets.keys()];
    },
    get hasLeft() {
      return hasLeft;
    },
    async writes(text, options = {}) {
      const at = options.at ?? now();
      const letter = letterOf(account, who, text, { ...options, at });
      if (account.device === undefined) leaveToPhone({ ...letter, at });
      else await handset(options.device ?? 0).mail.post(letter);
      return letter.id;
    },
    replay: (id) => mailWith(id).replay(id),
    sendAgain: (id) => mailWith(id).sendAgain(id),
    seen: view.seen,
    sees: view.sees,
    typing,
    get readIds() {
      return [...read];
    },
    get deliveredIds() {
      return [...delivered];
    },
    asksAgain: phone.reader.asksAgain,
    get undecryptable() {
      return phone.reader.undecryptable;
    },
    losesSession: phone.line.lose,
    leaves() {
      hasLeft = true;
    },
    async receives(message) {
      const { id, chat } = message;
      for (const { device, reader } of handsets.values()) {
        const sealed = sealedFor(message, who, device);
        if (sealed.length === 0) continue;
        const from = chat.endsWith('@lid') ? lidJid(who, device) : numberJid(who, device);
        const show = (content: proto.Message) => view.arrived(id, contentOf(content));
        await reader.read({ id, sealed, receiptFrom: { from } }, device === 0 ? show : ignore);
      }
    },
    getsFromOwner: (id, text) => view.arrived(id, { kind: 'text', text }),
    types: (state) => void typing.push(state),
    acknowledged(what, ids) {
      for (const id of ids) (what === 'read' ? read : delivered).add(id);
    },
    answerRetry: (device, retry) => handset(device).mail.answerRetry(retry),
  };
}

const ignore = () => undefined;

function letterOf(
  account: Account,
  from: Identity,
  text: string,
  options: WriteOptions & { readonly at: number },
): Letter {
  const { at, addressing = BY_LID, id = newMessageId(), quoting, device = 0 } = options;
  const author = addressing.by === 'lid' ? lidJid(account) : numberJid(account);
  return {
    id,
    message: textMessage(text, quoting && { ...quoting, author }),
    envelope: (content) => directMessage({ id, at, from, device, addressing }, content),
  };
}
