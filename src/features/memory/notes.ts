// Takes lines that hold certain words out of the notes of one person: long-term memory and its backups,
// notes by day and of sessions, learnings.

import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../../kernel/message/notes.ts';
import { forgetLines, type Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { LEARNINGS_FILE } from './files.ts';
import {
  BACKUPS_FOLDER,
  listFiles,
  listNotes,
  MAX_NOTE_BYTES,
  MEMORY_FOLDER,
  type NoteReader,
  readNote,
} from './note-files.ts';

export type NotePlace = { readonly path: string; readonly line: number; readonly text: string };

export async function findInNotes(
  reader: NoteReader,
  notes: string,
  holds: Holds,
): Promise<readonly NotePlace[]> {
  const places: NotePlace[] = [];
  for (const path of await pathsOf(reader, notes)) {
    const text = (await readNote(reader, path))?.text ?? '';
    for (const [index, line] of text.split('\n').entries()) {
      if (holds(line)) places.push({ path, line: index + 1, text: line.trim() });
    }
  }
  return places;
}

/** How many lines went. */
export async function forgetInNotes(
  reader: NoteReader,
  notes: string,
  holds: Holds,
): Promise<number> {
  let lines = 0;
  for (const path of await pathsOf(reader, notes)) {
    const change = (content: Buffer | undefined) => {
      const before = content?.toString('utf8') ?? '';
      const after = forgetLines(before, holds);
      if (after === before) return undefined;
      lines += before.split('\n').length - after.split('\n').length;
      return after;
    };
    await reader.files.update(reader.workspace(), path, change, { maxBytes: MAX_NOTE_BYTES });
  }
  return lines;
}

async function pathsOf(reader: NoteReader, notes: string): Promise<readonly string[]> {
  const found = await listNotes(reader, notes);
  const backups = await listFiles(reader, notes + BACKUPS_FOLDER, (name) => name.endsWith('.md'));
  const learnings = await listFiles(reader, `${notes}memory`, (name) => name === 'learnings.jsonl');
  const paths = [...found, ...backups, ...learnings].map(({ path }) => path);
  return paths.filter((path) => path.endsWith('.md') || path === notes + LEARNINGS_FILE);
}

// What a process that was killed while it wrote a note left beside it: it may hold what was to be kept,
// or what was to be forgotten, and nobody reads it.

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
