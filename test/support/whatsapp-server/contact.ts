// A person with one phone who writes with an account: their side of the chat, told by what their
// Signal device could decrypt. Stanzas come by messages.ts and receipts.ts, groups are in groups.ts.

import { createChatView } from './chat-view.ts';
import type { Contact, WriteOptions } from './contract.ts';
import { createLine, type Line } from './line.ts';
import { contentOf, newMessageId, textMessage } from './message-content.ts';
import { createReader, type Reader } from './reader.ts';
import { type Author, createReceipts } from './receipts.ts';
import type { Account } from './seams.ts';
import { createSentMail, type SentMail } from './sent-mail.ts';
import type { OutgoingMessage } from './stanzas.ts';
import { BY_LID, directMessage, type Identity, lidJid, numberJid } from './stanzas.ts';

/** What the other parts need of a contact. */
export interface ContactPhone extends Contact, Author {
  readonly account: Account;
  readonly line: Line;
  readonly reader: Reader;
  readonly mail: SentMail;
  readonly hasLeft: boolean;
  /** A message of the linked device in the chat of the two. */
  receives(message: OutgoingMessage): Promise<void>;
  /** The owner of the account wrote by hand. */
  getsFromOwner(id: string, text: string): void;
  types(state: string): void;
}

export function createContact(account: Account, who: Identity, now: () => number): ContactPhone {
  const line = createLine(account);
  const receipts = createReceipts(account, line, now);
  const reader = createReader(line, receipts);
  const mail = createSentMail(account, line);
  const view = createChatView(now);
  const typing: string[] = [];
  const delivered = new Set<string>();
  const read = new Set<string>();
  let hasLeft = false;
  return {
    ...who,
    account,
    line,
    reader,
    mail,
    get hasLeft() {
      return hasLeft;
    },
    async writes(text, options = {}) {
      const letter = letterOf(account, who, text, { at: now(), ...options });
      await mail.post(letter);
      return letter.id;
    },
    replay: mail.replay,
    sendAgain: mail.sendAgain,
    seen: view.seen,
    sees: view.sees,
    typing,
    get readIds() {
      return [...read];
    },
    get deliveredIds() {
      return [...delivered];
    },
    asksAgain: reader.asksAgain,
    get undecryptable() {
      return reader.undecryptable;
    },
    losesSession: line.lose,
    leaves() {
      hasLeft = true;
    },
    async receives({ id, chat, sealed }) {
      const parts = sealed.get(who.lid) ?? sealed.get(who.number) ?? [];
      const message = await reader.read({ id, sealed: parts, receiptFrom: { from: chat } });
      if (message !== undefined) view.arrived(id, contentOf(message));
    },
    getsFromOwner: (id, text) => view.arrived(id, { kind: 'text', text }),
    types: (state) => void typing.push(state),
    acknowledged(what, ids) {
      for (const id of ids) (what === 'read' ? read : delivered).add(id);
    },
    answerRetry: mail.answerRetry,
  };
}

function letterOf(
  account: Account,
  from: Identity,
  text: string,
  options: WriteOptions & { readonly at: number },
) {
  const { at, addressing = BY_LID, id = newMessageId(), quoting } = options;
  const author = addressing.by === 'lid' ? lidJid(account) : numberJid(account);
  return {
    id,
    message: textMessage(text, quoting && { ...quoting, author }),
    envelope: (content: Parameters<typeof directMessage>[1]) =>
      directMessage({ id, at, from, addressing }, content),
  };
}
