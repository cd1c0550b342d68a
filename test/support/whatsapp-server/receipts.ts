// Receipts in both directions: what the linked device read, got or could not read, and the same of
// a person towards it.

import { type BinaryNode, getBinaryNodeChild } from '@whiskeysockets/baileys';
import type { Line } from './line.ts';
import type { Account, KeyBundle, StanzaHandler } from './seams.ts';
import {
  bundleOfRetry,
  deliveryReceipt,
  type ReceiptSource,
  receiptIds,
  retryReceipt,
  userOf,
} from './stanzas.ts';

// A phone gives up on a message after so many attempts.
const MAX_RETRIES = 5;

/** Whose messages the linked device answers with receipts. */
export interface Author {
  /** Shown as delivered or read; where one was read it was delivered before. */
  acknowledged(what: 'delivered' | 'read', ids: readonly string[]): void;
  /** @throws where this person sent no such message */
  answerRetry(id: string, count: number, bundle: KeyBundle | undefined): Promise<void>;
}

/** Receipts of which nobody but the server takes note. */
const UNSEEN_TYPES = ['sender', 'peer_msg', 'hist_sync', 'read-self'];

export function receiptHandler(
  authorOf: (user: string, account: Account) => Author | undefined,
): StanzaHandler {
  return async (stanza, { account }) => {
    if (stanza.tag !== 'receipt') return false;
    const { type, to, participant } = stanza.attrs;
    const author = authorOf(userOf(participant ?? to), account);
    const ids = receiptIds(stanza);
    if (type === 'retry') return author === undefined ? false : retried(author, stanza);
    for (const id of ids) account.settle('message', id);
    if (type === undefined || type === 'inactive') author?.acknowledged('delivered', ids);
    else if (type === 'read') author?.acknowledged('read', ids);
    else if (!UNSEEN_TYPES.includes(type)) return false;
    return author !== undefined;
  };
}

async function retried(author: Author, receipt: BinaryNode): Promise<boolean> {
  const retry = getBinaryNodeChild(receipt, 'retry');
  const { id, count = '1' } = retry?.attrs ?? {};
  if (id === undefined) return false;
  await author.answerRetry(id, Number(count), bundleOfRetry(receipt));
  return true;
}

/** A person's receipts to the linked device. */
export interface Receipts {
  delivered(source: ReceiptSource, id: string): Promise<void>;
  /** Asks again, from the second time on with keys for a fresh session; in vain after the fifth. */
  asksAgain(source: ReceiptSource, id: string): Promise<void>;
}

export function createReceipts(account: Account, line: Line, now: () => number): Receipts {
  const retries = new Map<string, number>();
  return {
    delivered: (source, id) => account.deliver(deliveryReceipt(source, id, now())),
    async asksAgain(source, id) {
      const count = (retries.get(id) ?? 0) + 1;
      if (count > MAX_RETRIES) return;
      retries.set(id, count);
      const { registrationId } = line.device;
      const keys =
        count > 1 ? { registrationId, bundle: line.device.bundle() } : { registrationId };
      await account.deliver(retryReceipt(source, { id, at: now(), count }, keys));
    },
  };
}
