// Reading the notes of one person: which files there are, and their text. One that cannot be read does
// not take the others with it.

import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import type { Logger } from '../../lib/logger.ts';
import type { NoteFile } from './rules/recall-rank.ts';

export type NoteReader = {
  readonly files: GuardedFiles;
  /** Absolute path. */
  readonly workspace: () => string;
  readonly log: Logger;
};

export type NoteEntry = {
  readonly path: string;
  readonly bytes: number;
  /** Epoch milliseconds. */
  readonly modifiedAt: number;
};

export const DAY_NOTE = /^(\d{4}-\d{2}-\d{2})\.md$/;
export const SESSION_NOTE = /^SESSION_[\w-]+\.md$/;
export const MEMORY_FOLDER = 'memory';
export const SESSIONS_FOLDER = 'memory/sessions';
export const BACKUPS_FOLDER = 'memory/backups';
const LONG_TERM = 'MEMORY.md';
/** A larger file of notes is neither read nor written. */
export const MAX_NOTE_BYTES = 1_000_000;
const MAX_LISTED = 10_000;

/** The long-term memory, daily notes and those of sessions, newest first. */
export async function listNotes(reader: NoteReader, notes: string): Promise<readonly NoteEntry[]> {
  const isNote = (name: string) => name === LONG_TERM || DAY_NOTE.test(name);
  const [own, ofSessions] = await Promise.all([
    listFiles(reader, notes + MEMORY_FOLDER, isNote),
    listFiles(reader, notes + SESSIONS_FOLDER, (name) => SESSION_NOTE.test(name)),
  ]);
  return [...own, ...ofSessions].sort((a, b) => b.modifiedAt - a.modifiedAt);
}

/** Nothing where there is no such folder. */
export async function listFiles(
  { files, workspace }: NoteReader,
  folder: string,
  accepts: (name: string) => boolean,
): Promise<readonly NoteEntry[]> {
  const listing = await files
    .list(workspace(), folder, { maxEntries: MAX_LISTED })
    .catch((error: unknown) => {
      if (error instanceof GuardedFileError) return { entries: [] };
      throw error;
    });
  return listing.entries
    .filter(({ kind, name }) => kind === 'file' && accepts(name))
    .map(({ name, bytes, modifiedAt }) => ({ path: `${folder}/${name}`, bytes, modifiedAt }));
}

export async function readNote(
  { files, workspace, log }: NoteReader,
  path: string,
): Promise<NoteFile | undefined> {
  try {
    const content = await files.read(workspace(), path, { maxBytes: MAX_NOTE_BYTES });
    return { source: path, text: content.toString('utf8') };
  } catch (error) {
    if (!(error instanceof GuardedFileError)) throw error;
    if (error.reason !== 'not_found') log.warn('memory file left out', { path, error });
    return undefined;
  }
}
