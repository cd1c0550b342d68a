// The contents of a mail's files, one behind the other in a file without a name, until the last reader
// has left.

import type { FileHandle } from 'node:fs/promises';
import { htmlText } from '../../lib/html/html-text.ts';
import { createSweeper } from './bounded-bodies.ts';

const PIECE_BYTES = 64 * 1024;

export class MailContents {
  readonly #file: FileHandle;
  readonly #sizes: readonly number[];
  #readers = 1;

  /** The file is closed by `close` and the end of every reader. */
  constructor(file: FileHandle, sizes: readonly number[]) {
    this.#file = file;
    this.#sizes = sizes;
  }

  get isOpen(): boolean {
    return this.#readers > 0;
  }

  has(index: number): boolean {
    return index < this.#sizes.length;
  }

  async *read(index: number): AsyncGenerator<Uint8Array, void, void> {
    this.#readers += 1;
    try {
      const start = this.#sizes.slice(0, index).reduce((sum, bytes) => sum + bytes, 0);
      const end = start + (this.#sizes[index] ?? 0);
      const sweeper = createSweeper();
      for (let at = start; at < end; ) {
        const wanted = Math.min(PIECE_BYTES, end - at);
        const { buffer, bytesRead } = await this.#file.read(
          Buffer.allocUnsafe(wanted),
          0,
          wanted,
          at,
        );
        if (bytesRead === 0) return;
        yield buffer.subarray(0, bytesRead);
        sweeper.passed(bytesRead);
        at += bytesRead;
      }
    } finally {
      this.#left();
    }
  }

  /** Once; whoever reads goes on to the end. */
  close(): void {
    this.#left();
  }

  #left(): void {
    this.#readers -= 1;
    if (this.#readers === 0) void this.#file.close().catch(() => undefined);
  }
}

// The text a person sees of an HTML mail (case E23).

/** Without pictures. */
const MAX_HTML_CHARS = 500_000;
/** A picture written into the text. */
const INLINE_PICTURE = /(data:image\/[a-z0-9.+-]{1,40};base64,)[a-z0-9+/=\s]{100,}/gi;

export const htmlToVisibleText = (html: string): string =>
  htmlText(html.replace(INLINE_PICTURE, '$1').slice(0, MAX_HTML_CHARS), { links: /^https?:/i });
