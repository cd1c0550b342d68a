// Lines from a stream of bytes, each of bounded length. Nothing is copied twice, however small the
// pieces come.

const NEWLINE = 0x0a;

export class LineReader {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that this piece completes; undefined where one is longer than allowed. */
  read(piece: Buffer): readonly string[] | undefined {
    const lines: string[] = [];
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      if (!this.#keep(piece.subarray(start, end))) return undefined;
      lines.push(Buffer.concat(this.#parts).toString('utf8'));
      this.#parts = [];
      this.#bytes = 0;
      start = end + 1;
    }
    return this.#keep(piece.subarray(start)) ? lines : undefined;
  }

  #keep(part: Buffer): boolean {
    if (part.length === 0) return true;
    this.#parts.push(part);
    this.#bytes += part.length;
    return this.#bytes <= this.#maxBytes;
  }
}
