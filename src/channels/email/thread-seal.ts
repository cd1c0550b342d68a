// Proves of a Message-ID of ours that it was made for this thread and this recipient: nobody joins a
// thread by guessing ids.

import { createHmac, timingSafeEqual } from 'node:crypto';

const TAG_CHARS = 24;

export class ThreadSeal {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  tag(thread: string, recipient: string): string {
    return createHmac('sha256', this.#secret)
      .update(`${thread}\n${recipient}`)
      .digest('hex')
      .slice(0, TAG_CHARS);
  }

  isProven(tag: string, thread: string, recipient: string): boolean {
    const expected = Buffer.from(this.tag(thread, recipient));
    const given = Buffer.from(tag);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
}
