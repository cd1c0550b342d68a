// Whether a file is still the one that was read. Asked without the thread pool: the kernel answers
// from its memory in microseconds, and every turn asks about a dozen files.

import { lstatSync } from 'node:fs';

/** Changes whenever the file does, replaced ones included; undefined where no regular file is. */
export function fileStamp(path: string): string | undefined {
  try {
    const info = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return info?.isFile() === true ? `${info.ino} ${info.size} ${info.mtimeNs}` : undefined;
  } catch {
    return undefined;
  }
}
