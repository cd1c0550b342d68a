// Deletes old files of conversations that nobody looks at again. The gateway may be running: a file that
// is in use is left alone.

import { join } from 'node:path';
import { removeAsked } from '../../features/request-log/request-log.ts';
import { type SessionKey, sessionKey } from '../message/ids.ts';
import { ARCHIVE_FOLDER, byStem, keyOfFile, type StoredFile, storedFiles } from './catalog.ts';
import type { SessionForgetting } from './forget.ts';
import { encodeKey } from './rules/file.ts';
import { removeFile } from './upkeep.ts';

export type LeftoverRule = {
  /** Of the conversations that are meant. */
  readonly channel: string;
  /** Files last written before go, epoch milliseconds. */
  readonly before: number;
  /** Of such a conversation the newest file stays. */
  isInUse(session: SessionKey): boolean;
};

/** How many files went; `left` are conversations that still have some. */
export async function deleteLeftovers(
  { folder, exclusively }: SessionForgetting,
  { channel, before, isInUse }: LeftoverRule,
): Promise<{ readonly deleted: number; readonly left: ReadonlySet<SessionKey> }> {
  const prefix = encodeKey(sessionKey(`${channel}:`));
  const accepts = ({ stem }: { readonly stem: string }) => stem.startsWith(prefix);
  const places = [join(folder, ARCHIVE_FOLDER), folder];
  const found = (await Promise.all(places.map((place) => storedFiles(place, accepts)))).flat();
  const left = new Set<SessionKey>();
  let deleted = 0;
  for (const files of byStem(found).values()) {
    const [first] = files;
    if (first === undefined) continue;
    const key = await keyOfFile(first);
    const kept = isInUse(key) ? files.slice(-1) : [];
    const old = files.filter((file) => file.modifiedAt < before && !kept.includes(file));
    if (old.length > 0) await exclusively(key, () => removeAll(old));
    deleted += old.length;
    if (old.length < files.length) left.add(key);
    else await removeAsked(folder, first.name.stem);
  }
  return { deleted, left };
}

async function removeAll(files: readonly StoredFile[]): Promise<void> {
  for (const { path } of files) await removeFile(path);
}
