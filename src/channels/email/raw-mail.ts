// A mail as it came, read piece by piece from both threads: a small one in memory, a large one in an
// open file. A file descriptor counts in every thread of a process, so the number is all that is sent.

import { readSync } from 'node:fs';
import { getDefaultHighWaterMark } from 'node:stream';
import { createSweeper } from './young-garbage.ts';

/** Whoever opened the file closes it, after everybody who reads it. */
export type RawMail = Uint8Array | { readonly fd: number; readonly bytes: number };

/** As much as a stream takes before it asks to wait. */
const PIECE_BYTES = getDefaultHighWaterMark(false);

export const sizeOf = (raw: RawMail): number =>
  raw instanceof Uint8Array ? raw.byteLength : raw.bytes;

/** The bytes from `start` up to `end` or the end of the mail, of a file as a copy in `into`. */
export function bytesOf(raw: RawMail, start: number, end: number, into?: Buffer): Buffer {
  const length = Math.max(0, Math.min(end, sizeOf(raw)) - start);
  if (raw instanceof Uint8Array) {
    return Buffer.from(raw.buffer, raw.byteOffset + Math.min(start, raw.byteLength), length);
  }
  const found = into ?? Buffer.allocUnsafe(length);
  let read = 0;
  while (read < length) {
    const count = readSync(raw.fd, found, read, length - read, start + read);
    if (count === 0) break;
    read += count;
  }
  return found.subarray(0, read);
}

/** Pieces that may be kept. */
export function* piecesOf(raw: RawMail): Generator<Buffer, void, void> {
  const size = sizeOf(raw);
  const sweeper = createSweeper();
  for (let at = 0; at < size; at += PIECE_BYTES) {
    yield bytesOf(raw, at, at + PIECE_BYTES);
    sweeper.passed(PIECE_BYTES);
  }
}

/** The same in memory that is used again for each: what is kept of one must be a copy. */
export function* passingPieces(raw: RawMail): Generator<Buffer, void, void> {
  const size = sizeOf(raw);
  const into = Buffer.allocUnsafe(Math.min(size, PIECE_BYTES));
  const sweeper = createSweeper();
  for (let at = 0; at < size; at += PIECE_BYTES) {
    yield bytesOf(raw, at, at + PIECE_BYTES, into);
    sweeper.passed(PIECE_BYTES);
  }
}
