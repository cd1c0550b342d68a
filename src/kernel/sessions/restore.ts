// Finds in a conversation's files what was taken out of its view, from the newest file back. The number
// of files one question opens is bounded.

import { join } from 'node:path';
import { orUndefined } from './file-errors.ts';
import { type FileScan, scanFile } from './read-lines.ts';
import { formatName, parseName, type SessionFileName } from './rules/name.ts';
import { type HeldPoint, pointsIn } from './rules/restore.ts';

const MAX_FILES = 20;

/** Newest first; what is in view again is left out. */
export async function findPoints(
  folder: string,
  newest: SessionFileName | undefined,
  maxPoints: number,
): Promise<readonly HeldPoint[]> {
  const back = new Set<string>();
  const found: HeldPoint[] = [];
  let name = newest;
  for (let files = 0; name !== undefined && files < MAX_FILES; files += 1) {
    const path = join(folder, formatName(name));
    const scan: FileScan | undefined = await scanFile(path).catch(orUndefined('ENOENT'));
    if (scan === undefined) break;
    const { carried, own, header } = scan;
    for (const entry of [...carried, ...own]) if (entry.role === 'restore') back.add(entry.brings);
    found.push(...pointsIn(carried, own).toReversed());
    if (found.filter(({ id }) => !back.has(id)).length >= maxPoints) break;
    name = header?.continues === undefined ? undefined : parseName(header.continues);
  }
  return found.filter(({ id }) => !back.has(id)).slice(0, maxPoints);
}
