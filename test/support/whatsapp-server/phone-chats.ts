// The account's own phone as a Signal peer of its linked device: hands on what the owner writes by
// hand, and shows what the linked device sent, from the copies that it gets of everything.

import { ChatView } from './chat-view.ts';
import type { Person } from './contact.ts';
import type { WriteOptions } from './contract.ts';
import { isNamed, type OutgoingMessage, sealedFor } from './device-stanzas.ts';
import { createHandset, type Handset } from './handset.ts';
import { contentOf, newMessageId, textMessage } from './message-content.ts';
import type { Author } from './receipts.ts';
import type { Account, PhoneChats } from './seams.ts';
import type { Letter } from './sent-mail.ts';
import {
  BY_LID,
  type Identity,
  isGroup,
  lidJid,
  numberJid,
  ownMessage,
  type ReceiptSource,
  userOf,
} from './stanzas.ts';

/** What the other parts need of an account's phone. */
export interface OwnPhone extends Author {
  readonly handset: Handset;
  readonly chats: PhoneChats;
  /** The phone's copy of what the linked device sent, anywhere or to it alone. */
  receives(message: OutgoingMessage): Promise<void>;
}

type PhoneDeps = {
  readonly account: Account;
  readonly contactOf: (user: string) => Person | undefined;
  readonly now: () => number;
};

export function createOwnPhone({ account, contactOf, now }: PhoneDeps): OwnPhone {
  const handset = createHandset(account, {
    ...{ device: 0, now, confirms: false },
    saved: account.saved,
  });
  const { mail, reader } = handset;
  const selfChat = new ChatView(now);
  const ownSent = new ChatView(now);
  return {
    handset,
    chats: {
      async writesTo(contact, text) {
        const letter = letterOf(account, contact, text, { at: now() });
        contactOf(contact.lid)?.getsFromOwner(letter.id, text);
        await mail.post(letter);
        return letter.id;
      },
      async writesToSelf(text, options = {}) {
        const letter = letterOf(account, account, text, { at: now(), ...options });
        await mail.post(letter);
        return letter.id;
      },
      selfChat: selfChat.seen,
      ownSent: ownSent.seen,
    },
    receives(message) {
      const { id, chat, groupCiphertext: ciphertext } = message;
      const delivery = {
        id,
        sealed: sealedFor(message, account),
        receiptFrom: receiptSource(account, chat),
        ...(isGroup(chat) ? { group: { jid: chat, ciphertext } } : {}),
      };
      const view = isNamed(account, userOf(chat)) ? selfChat : ownSent;
      return reader.read(delivery, (copy) =>
        view.arrived(id, contentOf(copy.deviceSentMessage?.message ?? copy)),
      );
    },
    acknowledged: () => undefined,
    answerRetry: (_device, retry) => mail.answerRetry(retry),
  };
}

function letterOf(
  account: Account,
  to: Identity,
  text: string,
  options: WriteOptions & { readonly at: number },
): Letter {
  const { at, addressing = BY_LID, id = newMessageId(), quoting } = options;
  const jidOf = addressing.by === 'lid' ? lidJid : numberJid;
  const quote = quoting && { ...quoting, author: jidOf(account) };
  const message = options.message ?? textMessage(text, quote);
  return {
    id,
    message: { deviceSentMessage: { destinationJid: jidOf(to), message } },
    envelope: (content) => ownMessage({ id, at, from: account, to, addressing }, content),
  };
}

function receiptSource(account: Account, chat: string): ReceiptSource {
  if (isGroup(chat)) return { from: chat, participant: lidJid(account) };
  const byLid = chat.endsWith('@lid');
  return { from: byLid ? lidJid(account) : numberJid(account), recipient: chat };
}
