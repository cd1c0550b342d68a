// The account's own phone as a Signal peer of its linked device: hands on what the owner writes by
// hand, and shows what the linked device sent, from the copies that it gets of everything.

import { createChatView } from './chat-view.ts';
import type { ContactPhone } from './contact.ts';
import type { WriteOptions } from './contract.ts';
import { createLine, type Line } from './line.ts';
import { contentOf, newMessageId, textMessage } from './message-content.ts';
import { createReader } from './reader.ts';
import { type Author, createReceipts } from './receipts.ts';
import type { Account, PhoneChats } from './seams.ts';
import { createSentMail, type SentMail } from './sent-mail.ts';
import {
  BY_LID,
  type Identity,
  isGroup,
  lidJid,
  numberJid,
  type OutgoingMessage,
  ownMessage,
  type ReceiptSource,
  userOf,
} from './stanzas.ts';

/** What the other parts need of an account's phone. */
export interface OwnPhone extends Author {
  readonly line: Line;
  readonly mail: SentMail;
  readonly chats: PhoneChats;
  /** The phone's copy of what the linked device sent, anywhere or to it alone. */
  receives(message: OutgoingMessage): Promise<void>;
}

type PhoneDeps = {
  readonly account: Account;
  readonly contactOf: (user: string) => ContactPhone | undefined;
  readonly now: () => number;
};

export function createOwnPhone({ account, contactOf, now }: PhoneDeps): OwnPhone {
  const line = createLine(account);
  const mail = createSentMail(account, line);
  const receipts = createReceipts(account, line, now);
  // A phone confirms its copies to nobody.
  const reader = createReader(line, { ...receipts, delivered: async () => undefined });
  const selfChat = createChatView(now);
  const ownSent = createChatView(now);
  return {
    line,
    mail,
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
    async receives({ id, chat, sealed, groupCiphertext }) {
      const message = await reader.read({
        id,
        sealed: sealed.get(account.lid) ?? sealed.get(account.number) ?? [],
        receiptFrom: receiptSource(account, chat),
        ...(isGroup(chat) ? { group: { jid: chat, ciphertext: groupCiphertext } } : {}),
      });
      if (message === undefined) return;
      const view = userOf(chat) === account.lid || userOf(chat) === account.number;
      const content = contentOf(message.deviceSentMessage?.message ?? message);
      (view ? selfChat : ownSent).arrived(id, content);
    },
    acknowledged: () => undefined,
    answerRetry: mail.answerRetry,
  };
}

function letterOf(
  account: Account,
  to: Identity,
  text: string,
  options: WriteOptions & { readonly at: number },
) {
  const { at, addressing = BY_LID, id = newMessageId(), quoting } = options;
  const jidOf = addressing.by === 'lid' ? lidJid : numberJid;
  const message = textMessage(text, quoting && { ...quoting, author: jidOf(account) });
  return {
    id,
    message: { deviceSentMessage: { destinationJid: jidOf(to), message } },
    envelope: (content: Parameters<typeof ownMessage>[1]) =>
      ownMessage({ id, at, from: account, to, addressing }, content),
  };
}

function receiptSource(account: Account, chat: string): ReceiptSource {
  if (isGroup(chat)) return { from: chat, participant: lidJid(account) };
  const byLid = chat.endsWith('@lid');
  return { from: byLid ? lidJid(account) : numberJid(account), recipient: chat };
}
