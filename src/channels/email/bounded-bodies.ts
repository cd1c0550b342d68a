// Bounds what a parser takes of the body of each part, which its options cannot. What is not wanted never
// reaches its decoders, which keep texts and quoted-printable whole.

import type { Transform } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { MailParser } from 'mailparser';
import { quotedPrintableDecoder } from './quoted-printable.ts';

/** Of all texts of a mail together, as they come. */
const MAX_TEXT_BYTES = 768 * 1024;
/** Of a file, as it comes: enough for a calendar or a report. */
const MAX_HEAD_BYTES = 512 * 1024;

/** `beginnings`: the texts and how each file begins; `files`: whole files and no text. */
export type Wanted = 'beginnings' | 'files';

/** The parts of mailparser this file knows; its types leave them out. */
type Inside = {
  processChunk(chunk: Chunk, done: (error?: Error) => void): void;
  readonly curnode: { readonly isAttachment?: boolean } | false;
};

type Chunk =
  | { readonly type: 'node'; readonly encoding: string | false; getDecoder(): Transform }
  | { readonly type: 'body'; readonly value: Buffer }
  | { readonly type: 'data' };

/** Returns how large the part at hand is, decoded, where not all of it was taken. */
export function boundBodies(parser: MailParser, wanted: Wanted): () => number | undefined {
  const inside = parser as unknown as Inside;
  const process = inside.processChunk.bind(parser);
  const limits =
    wanted === 'files'
      ? { text: 0, file: Number.POSITIVE_INFINITY }
      : {
          text: MAX_TEXT_BYTES,
          file: MAX_HEAD_BYTES,
        };
  let textLeft = limits.text;
  let part = new PartSize(false);

  inside.processChunk = (chunk, done) => {
    if (chunk.type === 'node') {
      part = new PartSize(chunk.encoding);
      if (wanted === 'files' && chunk.encoding === 'quoted-printable') {
        chunk.getDecoder = quotedPrintableDecoder;
      }
    }
    if (chunk.type !== 'body') return process(chunk, done);
    const { value } = chunk;
    const isFile = inside.curnode !== false && inside.curnode.isAttachment === true;
    const left = isFile ? limits.file - part.rawBytes : textLeft;
    const taken = value.subarray(0, Math.max(0, left));
    if (isFile) part.add(value, taken.length < value.length);
    else textLeft -= taken.length;
    if (taken.length > 0) process({ ...chunk, value: taken }, done);
    else setImmediate(done);
  };
  return () => part.decodedBytes();
}

class PartSize {
  readonly #encoding: string | false;
  #isCut = false;
  #digits = 0;
  #escapes = 0;
  rawBytes = 0;

  constructor(encoding: string | false) {
    this.#encoding = encoding;
  }

  add(value: Buffer, isCut: boolean): void {
    this.#isCut ||= isCut;
    this.rawBytes += value.length;
    if (this.#encoding === 'base64') this.#digits += count(value, isDigit);
    else if (this.#encoding === 'quoted-printable') this.#escapes += count(value, isEscape);
  }

  decodedBytes(): number | undefined {
    if (!this.#isCut) return undefined;
    if (this.#encoding === 'base64') return Math.floor((this.#digits * 3) / 4);
    return this.rawBytes - 2 * this.#escapes;
  }
}

const isEscape = (byte: number) => byte === 0x3d;

/** Everything in base64 but padding and line ends. */
const isDigit = (byte: number) => byte > 0x20 && byte !== 0x3d;

function count(value: Buffer, isCounted: (byte: number) => boolean): number {
  let found = 0;
  for (const byte of value) if (isCounted(byte)) found += 1;
  return found;
}

// Buffers lie outside the heap, and V8 looks for dead ones only after 32 MB of them: as much as a large
// mail leaves behind in each thread it passes through. So they are cleared away as it passes.

type Collect = (options: { readonly type: 'minor' }) => void;

const CLEAR_EVERY_BYTES = 2 * 1024 * 1024;

/** Counts what passes, and clears away the young dead every few megabytes: some milliseconds each time. */
export function createSweeper(): { passed(bytes: number): void } {
  let unswept = 0;
  let collect: Collect | undefined;
  return {
    passed(bytes) {
      unswept += bytes;
      if (unswept < CLEAR_EVERY_BYTES) return;
      unswept = 0;
      collect ??= collector();
      collect({ type: 'minor' });
    },
  };
}

/** The collector counts as a function of contexts made after the flag is set. */
function collector(): Collect {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc');
}
