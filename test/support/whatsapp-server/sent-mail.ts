// What one person sent to the linked device: kept, so that it can be delivered again as it was, be
// encrypted anew, or be given once more to a device that could not read it.

import type { BinaryNode, proto } from '@whiskeysockets/baileys';
import type { Line } from './line.ts';
import type { Retry } from './receipts.ts';
import type { Account } from './seams.ts';

export type Letter = {
  readonly id: string;
  readonly message: proto.IMessage;
  envelope(content: BinaryNode[]): BinaryNode;
};

export interface SentMail {
  /** @param sealed the content, where it is not the message sealed for the linked device alone */
  post(letter: Letter, sealed?: BinaryNode[]): Promise<void>;
  /** The same ciphertext once more. */
  replay(id: string): Promise<void>;
  sendAgain(id: string): Promise<void>;
  /** Encrypted anew in a fresh session. */
  answerRetry(retry: Retry): Promise<void>;
  has(id: string): boolean;
  message(id: string): proto.IMessage | undefined;
}

export function createSentMail(account: Account, line: Line): SentMail {
  const sent = new Map<string, { readonly letter: Letter; readonly stanza: BinaryNode }>();
  const known = (id: string) => {
    const mail = sent.get(id);
    if (mail === undefined) throw new Error(`No message ${id} was sent from here`);
    return mail;
  };
  const deliver = async (letter: Letter, content: BinaryNode[]) => {
    const stanza = letter.envelope(content);
    sent.set(letter.id, { letter, stanza });
    await account.deliver(stanza);
  };
  return {
    post: async (letter, sealed) => deliver(letter, sealed ?? [await line.seal(letter.message)]),
    replay: async (id) => account.deliver(known(id).stanza),
    async sendAgain(id) {
      const { letter } = known(id);
      await deliver(letter, [await line.seal(letter.message)]);
    },
    async answerRetry({ id, count, bundle }) {
      const { letter } = known(id);
      await deliver(letter, [await line.sealAnew(letter.message, count, bundle)]);
    },
    has: (id) => sent.has(id),
    message: (id) => sent.get(id)?.letter.message,
  };
}
