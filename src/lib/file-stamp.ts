// Whether a file is still the one that was read.

import { lstat } from 'node:fs/promises';

/** Changes whenever the file does, replaced ones included; undefined where no regular file is. */
export async function fileStamp(path: string): Promise<string | undefined> {
  try {
    const info = await lstat(path, { bigint: true });
    return info.isFile() ? `${info.ino} ${info.size} ${info.mtimeNs}` : undefined;
  } catch {
    return undefined;
  }
}
