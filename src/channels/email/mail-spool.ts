// Holds a raw mail and the contents of its files while they are read: small ones in memory, large
// ones in a file that is unlinked before its first byte is written, so that no other process can
// open it and it disappears with this one.

import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BACKOFF, ChannelError } from '../../kernel/message/errors.ts';
import { createSweeper, type RawMail } from '../../lib/mail/raw-mail.ts';
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
