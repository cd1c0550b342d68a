// How a person's phone reads what the linked device sent: opens it, shows it in its chat, confirms
// it or asks for it again. A ciphertext that came twice is known and needs no second opening.

import { createHash } from 'node:crypto';
import { proto } from '@whiskeysockets/baileys';
import type { Line } from './line.ts';
import type { Receipts } from './receipts.ts';
import type { Sealed } from './signal-device.ts';
import type { ReceiptSource } from './stanzas.ts';

/** One person's part of a message stanza. */
export type Delivery = {
  readonly id: string;
  readonly sealed: readonly Sealed[];
  readonly group?: { readonly jid: string; readonly ciphertext: Uint8Array | undefined };
  readonly receiptFrom: ReceiptSource;
};

export interface Reader {
  /** What can be read is shown and then confirmed, anything else asked for again. */
  read(delivery: Delivery, show: (message: proto.Message) => void): Promise<void>;
  readonly undecryptable: number;
  /** Asks again for a message that arrived here, readable or not. @throws where none did */
  asksAgain(id: string): Promise<void>;
}

export function createReader(line: Line, receipts: Receipts, confirms: boolean): Reader {
  const opened = new Map<string, proto.Message>();
  const sources = new Map<string, ReceiptSource>();
  let undecryptable = 0;
  const once = async (ciphertext: Uint8Array, open: () => Promise<proto.Message>) => {
    const hash = createHash('sha256').update(ciphertext).digest('base64');
    const message = opened.get(hash) ?? (await open());
    opened.set(hash, message);
    return message;
  };
  const openSealed = async (sealed: readonly Sealed[]) => {
    let message = proto.Message.create({});
    for (const one of sealed) message = await once(one.ciphertext, () => line.open(one));
    return message;
  };
  const openAll = async ({ sealed, group }: Delivery) => {
    const ciphertext = group?.ciphertext;
    if (group === undefined || ciphertext === undefined) return openSealed(sealed);
    // A sender key that cannot be read matters only where the one before does not do.
    await openSealed(sealed).catch(() => undefined);
    return once(ciphertext, () => line.openFromGroup(group.jid, ciphertext));
  };
  return {
    async read(delivery, show) {
      const { id, receiptFrom } = delivery;
      sources.set(id, receiptFrom);
      const message = await openAll(delivery).catch(() => undefined);
      if (message === undefined) {
        undecryptable += 1;
        await receipts.asksAgain(receiptFrom, id);
        return;
      }
      show(message);
      if (confirms) await receipts.delivered(receiptFrom, id);
    },
    get undecryptable() {
      return undecryptable;
    },
    async asksAgain(id) {
      const source = sources.get(id);
      if (source === undefined) throw new Error(`No message ${id} came here`);
      await receipts.asksAgain(source, id);
    },
  };
}
