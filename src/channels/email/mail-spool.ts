// Where a mail waits while it is read: a small one in memory, a large one in a file that has no name any
// more when its first byte is written. So nobody else can open it, and it is gone when the process is,
// however that ends.

import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BACKOFF, ChannelError } from '../../core/errors.ts';
import type { RawMail } from './raw-mail.ts';
import { createSweeper } from './young-garbage.ts';

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
