// What a process that was killed while it wrote a note left beside it: it may hold what was to be kept,
// or what was to be forgotten, and nobody reads it.

import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../core/notes.ts';
import { MEMORY_FOLDER } from './note-files.ts';

const TORN = /^\.nanobot-[0-9a-f-]{36}\.tmp$/;

/** Deletes those from before, epoch milliseconds; younger ones may be under way. */
export async function removeTornNotes(workspace: string, before: number): Promise<void> {
  for (const folder of [MEMORY_FOLDER, PEOPLE_FOLDER, GROUPS_FOLDER]) {
    const options = { recursive: true, withFileTypes: true } as const;
    const found = await readdir(join(workspace, folder), options).catch(() => []);
    for (const entry of found) {
      if (!entry.isFile() || !TORN.test(entry.name)) continue;
      const path = join(entry.parentPath, entry.name);
      const info = await lstat(path).catch(() => undefined);
      if (info !== undefined && info.mtimeMs < before) await rm(path, { force: true });
    }
  }
}
