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

export class Reader {
  readonly #line: Line;
  readonly #receipts: Receipts;
  readonly #confirms: boolean;
  readonly #opened = new Map<string, proto.Message>();
  readonly #sources = new Map<string, ReceiptSource>();
  #undecryptable = 0;

  /** @param confirms whether it tells the linked device what it got */
  constructor(line: Line, receipts: Receipts, confirms: boolean) {
    this.#line = line;
    this.#receipts = receipts;
    this.#confirms = confirms;
  }

  get undecryptable(): number {
    return this.#undecryptable;
  }

  /** What can be read is shown and then confirmed, anything else asked for again. */
  async read(delivery: Delivery, show: (message: proto.Message) => void): Promise<void> {
    const { id, receiptFrom } = delivery;
    this.#sources.set(id, receiptFrom);
    const message = await this.#open(delivery).catch(() => undefined);
    if (message === undefined) {
      this.#undecryptable += 1;
      await this.#receipts.asksAgain(receiptFrom, id);
      return;
    }
    show(message);
    if (this.#confirms) await this.#receipts.delivered(receiptFrom, id);
  }

  /** Asks again for a message that arrived here, readable or not. @throws where none did */
  async asksAgain(id: string): Promise<void> {
    const source = this.#sources.get(id);
    if (source === undefined) throw new Error(`No message ${id} came here`);
    await this.#receipts.asksAgain(source, id);
  }

  async #open({ sealed, group }: Delivery): Promise<proto.Message> {
    const ciphertext = group?.ciphertext;
    if (group === undefined || ciphertext === undefined) return this.#openSealed(sealed);
    // A sender key that cannot be read matters only where the one before does not do.
    await this.#openSealed(sealed).catch(() => undefined);
    return this.#once(ciphertext, () => this.#line.openFromGroup(group.jid, ciphertext));
  }

  async #openSealed(sealed: readonly Sealed[]): Promise<proto.Message> {
    let message = proto.Message.create({});
    for (const one of sealed) {
      message = await this.#once(one.ciphertext, () => this.#line.open(one));
    }
    return message;
  }

  async #once(ciphertext: Uint8Array, open: () => Promise<proto.Message>): Promise<proto.Message> {
    const hash = createHash('sha256').update(ciphertext).digest('base64');
    const message = this.#opened.get(hash) ?? (await open());
    this.#opened.set(hash, message);
    return message;
  }
}
