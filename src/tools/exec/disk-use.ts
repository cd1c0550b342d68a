// How much a program has put on the disk. The disk's own count is cheap and counts everybody; only where
// it has grown too much the files themselves are looked at.

import { lstat, readdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';

/** What a file costs beside its content. */
const INODE_BYTES = 4096;
const BLOCK_BYTES = 512;

/** Of the whole disk; undefined where the folder is gone. */
export async function usedBytes(folder: string): Promise<number | undefined> {
  const found = await statfs(folder).catch(() => undefined);
  if (found === undefined) return undefined;
  const { blocks, bfree, bsize, files, ffree } = found;
  return (blocks - bfree) * bsize + (files - ffree) * INODE_BYTES;
}

/** Of what was changed in the folder since then, up to `enough`. */
export async function changedBytes(folder: string, since: number, enough: number): Promise<number> {
  const open = [folder];
  let total = 0;
  for (let next = open.pop(); next !== undefined && total <= enough; next = open.pop()) {
    const entries = await readdir(next, { withFileTypes: true }).catch(() => []);
    const parent = next;
    open.push(
      ...entries.filter((each) => each.isDirectory()).map(({ name }) => join(parent, name)),
    );
    for (const { name } of entries) {
      const info = await lstat(join(parent, name)).catch(() => undefined);
      if (info !== undefined && info.ctimeMs >= since)
        total += info.blocks * BLOCK_BYTES + INODE_BYTES;
    }
  }
  return total;
}
