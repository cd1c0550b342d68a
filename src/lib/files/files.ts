// Files that survive a crash: written beside, synced, renamed, and the folder synced after.

import { randomUUID } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Replaces the file in one step. `mode` defaults to 0600. */
export async function writeAtomic(
  path: string,
  content: string | Uint8Array,
  mode = 0o600,
): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID()}.tmp`);
  try {
    const file = await open(temporary, 'wx', mode);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Makes a rename or a new file in the folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

// Whether a file is still the one that was read. Asked without the thread pool: the kernel answers
// from its memory in microseconds, and every turn asks about a dozen files.

/** Changes whenever the file does, replaced ones included; undefined where no regular file is. */
export function fileStamp(path: string): string | undefined {
  try {
    const info = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return info?.isFile() === true ? `${info.ino} ${info.size} ${info.mtimeNs}` : undefined;
  } catch {
    return undefined;
  }
}
