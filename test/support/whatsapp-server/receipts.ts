// Receipts in both directions: what the linked device read, got or could not read, and the same of
// a person towards it.

import { type BinaryNode, getBinaryNodeChild, jidDecode } from '@whiskeysockets/baileys';
import { bundleOfRetry, receiptIds } from './device-stanzas.ts';
import type { Line } from './line.ts';
import type { Account, KeyBundle, StanzaHandler } from './seams.ts';
import { deliveryReceipt, type ReceiptSource, retryReceipt } from './stanzas.ts';

// A phone gives up on a message after so many attempts.
const MAX_RETRIES = 5;

/** Whose messages the linked device answers with receipts. */
export interface Author {
  /** Shown as delivered or read; where one was read it was delivered before. */
  acknowledged(what: 'delivered' | 'read', ids: readonly string[]): void;
  /** @throws where this device of the person sent no such message */
  answerRetry(device: number, retry: Retry): Promise<void>;
}

export type Retry = {
  readonly id: string;
  readonly count: number;
  /** Of the linked device, from its second attempt on. */
  readonly bundle: KeyBundle | undefined;
};

/** Receipts of which nobody but the server takes note. */
const UNSEEN_TYPES = ['sender', 'peer_msg', 'hist_sync', 'read-self'];

export function receiptHandler(
  authorOf: (user: string, account: Account) => Author | undefined,
): StanzaHandler {
  return async (stanza, { account }) => {
    if (stanza.tag !== 'receipt') return false;
    const { type, to, participant } = stanza.attrs;
    const jid = jidDecode(participant ?? to);
    const author = authorOf(jid?.user ?? '', account);
    if (author === undefined) return false;
    if (type === 'retry') {
      const retry = retryOf(stanza);
      if (retry !== undefined) await author.answerRetry(jid?.device ?? 0, retry);
      return retry !== undefined;
    }
    const isSeen = type === undefined || type === 'inactive' || type === 'read';
    if (!isSeen && !UNSEEN_TYPES.includes(type)) return false;
    const ids = receiptIds(stanza);
    for (const id of ids) account.settle('message', id);
    if (isSeen) author.acknowledged(type === 'read' ? 'read' : 'delivered', ids);
    return true;
  };
}

function retryOf(receipt: BinaryNode): Retry | undefined {
  const { id, count = '1' } = getBinaryNodeChild(receipt, 'retry')?.attrs ?? {};
  return id === undefined
    ? undefined
    : { id, count: Number(count), bundle: bundleOfRetry(receipt) };
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
