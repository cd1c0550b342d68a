// Cuts the client's byte stream into frames: the optional edge-routing prologue and the header
// first, then bodies behind a length of three bytes.

import { NOISE_WA_HEADER } from '@whiskeysockets/baileys';

const LENGTH_BYTES = 3;
const ROUTING_MAGIC = Buffer.from([0x45, 0x44, 0, 1]);
const ROUTING_HEAD_BYTES = ROUTING_MAGIC.length + LENGTH_BYTES;

export class FrameReader {
  #bytes: Buffer = Buffer.alloc(0);
  #isIntroduced = false;
  #routingInfo: Uint8Array | undefined;

  /** What the client sent back of the routing info it was given. */
  get routingInfo(): Uint8Array | undefined {
    return this.#routingInfo;
  }

  /** @throws where the stream does not begin as WhatsApp's. */
  push(bytes: Uint8Array): readonly Buffer[] {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    if (!this.#isIntroduced) this.#isIntroduced = this.#takeIntro();
    return this.#isIntroduced ? this.#takeFrames() : [];
  }

  #takeIntro(): boolean {
    if (this.#bytes.length < ROUTING_HEAD_BYTES) return false;
    const hasRouting = this.#bytes.subarray(0, ROUTING_MAGIC.length).equals(ROUTING_MAGIC);
    const length = hasRouting ? this.#bytes.readUIntBE(ROUTING_MAGIC.length, LENGTH_BYTES) : 0;
    const at = hasRouting ? ROUTING_HEAD_BYTES + length : 0;
    if (this.#bytes.length < at + NOISE_WA_HEADER.length) return false;
    const end = at + NOISE_WA_HEADER.length;
    if (!this.#bytes.subarray(at, end).equals(NOISE_WA_HEADER)) {
      throw new Error('the stream does not begin with the WhatsApp header');
    }
    if (hasRouting) this.#routingInfo = this.#bytes.subarray(ROUTING_HEAD_BYTES, at);
    this.#bytes = this.#bytes.subarray(end);
    return true;
  }

  #takeFrames(): readonly Buffer[] {
    const frames: Buffer[] = [];
    while (this.#bytes.length >= LENGTH_BYTES) {
      const end = LENGTH_BYTES + this.#bytes.readUIntBE(0, LENGTH_BYTES);
      if (this.#bytes.length < end) break;
      frames.push(this.#bytes.subarray(LENGTH_BYTES, end));
      this.#bytes = this.#bytes.subarray(end);
    }
    return frames;
  }
}

export function frame(body: Uint8Array): Buffer {
  const head = Buffer.alloc(LENGTH_BYTES);
  head.writeUIntBE(body.length, 0, LENGTH_BYTES);
  return Buffer.concat([head, body]);
}
