// Files that this process may not read. A test that runs as root may read everything, so it works as
// nobody for a while.

import { execFileSync } from 'node:child_process';
import { chmod, chown } from 'node:fs/promises';

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** Gives the folders to nobody, except the one file, which nobody may read; then works as nobody. */
export async function withUnreadable<T>(
  folders: readonly string[],
  file: string,
  use: () => Promise<T>,
): Promise<T> {
  if (isRoot) execFileSync('chown', ['-R', String(NOBODY), ...folders]);
  await chmod(file, 0o000);
  if (isRoot) await chown(file, 0, 0);
  if (isRoot) process.seteuid?.(NOBODY);
  try {
    return await use();
  } finally {
    if (isRoot) process.seteuid?.(0);
    await chmod(file, 0o600).catch(() => undefined);
  }
}
