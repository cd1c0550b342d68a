// Holds a raw mail and the contents of its files while they are read: small ones in memory, large
// ones in a file that is unlinked before its first byte is written, so that no other process can
// open it and it disappears with this one. Bodies are decoded within bounds.

import { randomUUID } from 'node:crypto';
import { readSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getDefaultHighWaterMark, Transform } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { MailParser } from 'mailparser';
import { BACKOFF, ChannelError } from '../../kernel/message/errors.ts';
import { htmlText } from '../../lib/html/html-text.ts';
import { t } from '../../lib/texts.ts';

/** Larger mails go to a file. */
export const MAX_MEMORY_BYTES = 256 * 1024;

export type SpooledMail = AsyncDisposable & { readonly raw: RawMail };

/** Undefined if no piece came. @throws ChannelError `mail_spool` */
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
  throw new ChannelError('mail_spool', t`a large mail cannot be written to the temporary folder`, {
    remedy: BACKOFF,
    cause,
  });
}

// A received mail, read piece by piece from both threads: a small one in memory, a large one in an
// open file. A file descriptor is valid in every thread of a process, so only its number is passed.

/** The code that opened the file closes it, after all readers have ended. */
export type RawMail = Uint8Array | { readonly fd: number; readonly bytes: number };

/** What a stream accepts before it asks to wait. */
const PIECE_BYTES = getDefaultHighWaterMark(false);

export const sizeOf = (raw: RawMail): number =>
  raw instanceof Uint8Array ? raw.byteLength : raw.bytes;

/** The bytes from `start` to `end` or the end of the mail; for a file, copied into `into`. */
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
export const piecesOf = (raw: RawMail): Generator<Buffer, void, void> => pieces(raw);

/** The same in a reused buffer: what is kept of a piece must be copied. */
export const passingPieces = (raw: RawMail): Generator<Buffer, void, void> =>
  pieces(raw, Buffer.allocUnsafe(Math.min(sizeOf(raw), PIECE_BYTES)));

function* pieces(raw: RawMail, into?: Buffer): Generator<Buffer, void, void> {
  const size = sizeOf(raw);
  const sweeper = createSweeper();
  for (let at = 0; at < size; at += PIECE_BYTES) {
    yield bytesOf(raw, at, at + PIECE_BYTES, into);
    sweeper.passed(PIECE_BYTES);
  }
}

// Bounds how much of the body of each part a parser takes, which its options cannot do. Unwanted
// bytes never reach its decoders, which keep texts and quoted-printable whole.

/** For all texts of a mail together, encoded. */
const MAX_TEXT_BYTES = 768 * 1024;
/** For one file, encoded: enough for a calendar or a report. */
const MAX_HEAD_BYTES = 512 * 1024;

/** `beginnings`: the texts and the start of each file; `files`: whole files and no text. */
export type Wanted = 'beginnings' | 'files';

/** The internals of mailparser used here; its types omit them. */
type Inside = {
  processChunk(chunk: Chunk, done: (error?: Error) => void): void;
  readonly curnode: { readonly isAttachment?: boolean } | false;
};

type Chunk =
  | { readonly type: 'node'; readonly encoding: string | false; getDecoder(): Transform }
  | { readonly type: 'body'; readonly value: Buffer }
  | { readonly type: 'data' };

/** Returns the decoded size of the current part if it was truncated. */
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

/** A base64 character other than padding and line ends. */
const isDigit = (byte: number) => byte > 0x20 && byte !== 0x3d;

function count(value: Buffer, isCounted: (byte: number) => boolean): number {
  let found = 0;
  for (const byte of value) if (isCounted(byte)) found += 1;
  return found;
}

// Buffers lie outside the heap, and V8 collects unused ones only after 32 MB: as much as a large
// mail leaves behind in each thread. So they are collected while the mail passes.

type Collect = (options: { readonly type: 'minor' }) => void;

const CLEAR_EVERY_BYTES = 2 * 1024 * 1024;

/** Runs a minor collection every few megabytes; each takes some milliseconds. */
function createSweeper(): { passed(bytes: number): void } {
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

/** The collector is a function of contexts created after the flag is set. */
function collector(): Collect {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc');
}

// Decodes quoted-printable (RFC 2045 section 6.7) as a stream, for files too large to hold in
// memory. Invalid escapes stay as written.

const LF = 0x0a;
const EQUALS = 0x3d;
/** Longer lines are decoded in pieces. */
const MAX_LINE_BYTES = 256 * 1024;

const BLANKS_BEFORE_END = /(^|[^\t ])[\t ]+(?=[\r\n])/g;
const BLANKS_AT_END = /(^|[^\t ])[\t ]+$/;
const SOFT_BREAK = /=\r?\n/g;
const SOFT_END = /=$/;
const ESCAPE = /=([\da-f]{2})/gi;

export function quotedPrintableDecoder(): Transform {
  let pending: Buffer = Buffer.alloc(0);
  return new Transform({
    transform(chunk: Buffer, _, done) {
      const all = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const lines = all.lastIndexOf(LF) + 1;
      const isEndless = lines === 0 && all.length > MAX_LINE_BYTES;
      const end = isEndless ? Math.max(all.lastIndexOf(EQUALS), 0) || all.length : lines;
      pending = all.subarray(end);
      done(null, decoded(all.toString('latin1', 0, end).replace(BLANKS_BEFORE_END, '$1')));
    },
    flush(done) {
      const rest = pending.toString('latin1').replace(BLANKS_BEFORE_END, '$1');
      done(null, decoded(rest.replace(BLANKS_AT_END, '$1').replace(SOFT_END, '')));
    },
  });
}

function decoded(text: string): Buffer {
  const bytes = text
    .replace(SOFT_BREAK, '')
    .replace(ESCAPE, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}

const COPY_BYTES = 64 * 1024;

/** A mail's files, one behind the other in an unlinked file until the last reader ends. */
export class MailContents {
  readonly #file: FileHandle;
  readonly #sizes: readonly number[];
  #readers = 1;

  /** The file is closed after `close` and the end of every reader. */
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
        const wanted = Math.min(COPY_BYTES, end - at);
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

  /** Runs once; current readers continue to the end. */
  close(): void {
    this.#left();
  }

  #left(): void {
    this.#readers -= 1;
    if (this.#readers === 0) void this.#file.close().catch(() => undefined);
  }
}

// The text that a person sees of an HTML mail (case E23).

/** Without embedded pictures. */
const MAX_HTML_CHARS = 500_000;
/** A picture embedded in the text. */
const INLINE_PICTURE = /(data:image\/[a-z0-9.+-]{1,40};base64,)[a-z0-9+/=\s]{100,}/gi;

export const htmlToVisibleText = (html: string): string =>
  htmlText(html.replace(INLINE_PICTURE, '$1').slice(0, MAX_HTML_CHARS), { links: /^https?:/i });
