// Where a mail waits while it is read: a small one in memory, a large one in a file that has no name any
// more when its first byte is written. So nobody else can open it, and it is gone when the process is,
// however that ends.

import { randomUUID } from 'node:crypto';
import { readSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getDefaultHighWaterMark } from 'node:stream';
import { BACKOFF, ChannelError } from '../../kernel/message/errors.ts';
import { createSweeper } from './bounded-bodies.ts';

/** Larger mails go through a file. */
export const MAX_MEMORY_BYTES = 256 * 1024;

export type SpooledMail = AsyncDisposable & { readonly raw: RawMail };

/** Undefined where not a piece came. @throws ChannelError `mail_spool` */
export async function spoolMail(
  pieces: AsyncIterable<Uint8Array>,
): Promise<SpooledMail | undefined> {
  const sweeper = createSweeper();
  const held: Uint8Array[] = [];
  let file: FileHandle | undefined;
  let bytes = 0;
  try {
    for await (const piece of pieces) {
      bytes += piece.length;
      sweeper.passed(piece.length);
      if (file === undefined) held.push(piece);
      else await file.writeFile(piece).catch(notKept);
      if (file !== undefined || bytes <= MAX_MEMORY_BYTES) continue;
      file = await openNameless();
      for (const earlier of held.splice(0)) await file.writeFile(earlier).catch(notKept);
    }
  } catch (error) {
    await file?.close();
    throw error;
  }
  if (bytes === 0) return undefined;
  if (file === undefined) return inMemory(Buffer.concat(held));
  const { fd } = file;
  return { raw: { fd, bytes }, [Symbol.asyncDispose]: () => closed(file) };
}

export const inMemory = (raw: Uint8Array): SpooledMail => ({
  raw,
  [Symbol.asyncDispose]: async () => undefined,
});

/** @throws ChannelError `mail_spool` */
export async function openNameless(): Promise<FileHandle> {
  const path = join(tmpdir(), `nanobot-mail-${randomUUID()}`);
  const file = await open(path, 'wx+', 0o600).catch(notKept);
  await rm(path, { force: true });
  return file;
}

const closed = (file: FileHandle) => file.close();

function notKept(cause: unknown): never {
  throw new ChannelError('mail_spool', 'a large mail cannot be written to the temporary folder', {
    remedy: BACKOFF,
    cause,
  });
}

// A mail as it came, read piece by piece from both threads: a small one in memory, a large one in an
// open file. A file descriptor counts in every thread of a process, so the number is all that is sent.

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
