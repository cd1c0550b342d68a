// A stream of bytes of which only the beginning and the end are kept, in bounded memory.

export type Kept = {
  readonly head: Buffer;
  readonly tail: Buffer;
  /** Bytes between the two that were not kept; 0: `head` and `tail` are the whole. */
  readonly omitted: number;
};

export class HeadAndTail {
  readonly #headBytes: number;
  readonly #tailBytes: number;
  readonly #head: Buffer[] = [];
  #tail: Buffer[] = [];
  #headSize = 0;
  #tailSize = 0;
  #total = 0;

  constructor(maxBytes: number) {
    this.#headBytes = Math.ceil(maxBytes / 2);
    this.#tailBytes = Math.floor(maxBytes / 2);
  }

  push(part: Buffer): void {
    this.#total += part.length;
    const first = part.subarray(0, Math.max(0, this.#headBytes - this.#headSize));
    if (first.length > 0) {
      this.#head.push(Buffer.from(first));
      this.#headSize += first.length;
    }
    const rest = part.subarray(first.length);
    if (rest.length === 0) return;
    this.#tail.push(Buffer.from(rest.subarray(Math.max(0, rest.length - this.#tailBytes))));
    this.#tailSize += Math.min(rest.length, this.#tailBytes);
    // Joined now and then only: many small parts must not cost their square.
    if (this.#tailSize > 2 * this.#tailBytes || this.#tail.length > 1000) this.#shrink();
  }

  /** All bytes that came. */
  get total(): number {
    return this.#total;
  }

  get kept(): Kept {
    this.#shrink();
    const head = Buffer.concat(this.#head);
    const tail = this.#tail[0] ?? Buffer.alloc(0);
    return { head, tail, omitted: this.#total - head.length - tail.length };
  }

  #shrink() {
    const whole = Buffer.concat(this.#tail);
    const tail = Buffer.from(whole.subarray(Math.max(0, whole.length - this.#tailBytes)));
    this.#tail = [tail];
    this.#tailSize = tail.length;
  }
}
