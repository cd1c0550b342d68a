// Memory as Markdown files that a person can read and edit: memory/MEMORY.md for facts, daily notes
// and session extracts beside it. What a fact line looks like is decided in core/memory-notes.ts.

import { join } from 'node:path';
import { NanobotError } from '../core/errors.ts';
import { addFact } from '../core/memory-notes.ts';
import { MEMORY_FILE } from '../core/prompt.ts';
import { type NoteFile, rankPassages } from '../core/recall-rank.ts';
import { createDayText } from '../core/zone-time.ts';
import type { Clock } from '../lib/clock.ts';
import { fileStamp } from '../lib/file-stamp.ts';
import type { GuardedFiles } from '../lib/guarded-files.ts';
import { GuardedFileError } from '../lib/guarded-path.ts';
import type { Logger } from '../lib/logger.ts';
import { mapLimited } from '../lib/map-limited.ts';
import type { MemoryHit, MemoryStore } from './memory.ts';

export type FileMemoryDeps = {
  /** Shared with the file tools, so that changes of one file run one after the other. */
  readonly files: GuardedFiles;
  /** Absolute path. */
  readonly workspace: () => string;
  readonly clock: Clock;
  /** IANA zone of the date before a fact; empty = the machine's. */
  readonly timeZone: () => string;
  readonly log: Logger;
};

const NOTE_FOLDERS = ['memory', 'memory/sessions'];
const NOTE_NAME = /^(?:\d{4}-\d{2}-\d{2}|SESSION_[\w-]+)\.md$/;
const MAX_FILE_BYTES = 1_000_000;
const MAX_FACT_CHARS = 2000;
/** Ranking this much takes about a tenth of a second, in which nothing else runs. */
const MAX_SEARCHED_BYTES = 1_000_000;
const MAX_LISTED = 10_000;
const MAX_READ_AT_ONCE = 4;
/** Memories kept for the next turn. */
const MAX_SHOWN = 64;
const RECALL_LIMITS = { maxHits: 5, maxChars: 8000 };

type ShownMemory = {
  readonly stamp: string | undefined;
  readonly text: string;
};

export function createFileMemory(deps: FileMemoryDeps): MemoryStore {
  const { files, workspace, log } = deps;
  const dayOf = createDayText();
  /** By path: read at every turn, changed rarely. */
  const shown = new Map<string, ShownMemory>();
  const today = () => dayOf(deps.clock.now(), deps.timeZone());

  return {
    async remember(fact, notes = '') {
      if (fact.trim() === '' || fact.length > MAX_FACT_CHARS) {
        throw new NanobotError('fact_refused', `a fact has 1 to ${MAX_FACT_CHARS} characters`);
      }
      let isNew = false;
      const change = (content: Buffer | undefined) => {
        const changed = addFact(content?.toString('utf8') ?? '', fact, today());
        isNew = changed !== undefined;
        return changed;
      };
      await files.update(workspace(), notes + MEMORY_FILE, change, { maxBytes: MAX_FILE_BYTES });
      return isNew ? 'added' : 'known';
    },
    async recall(query, notes = ''): Promise<readonly MemoryHit[]> {
      const found = await notePaths(files, workspace(), notes);
      const paths = [notes + MEMORY_FILE, ...found];
      const read = (path: string) => readNote(files, workspace(), path, log);
      const texts = await mapLimited(paths, MAX_READ_AT_ONCE, read);
      const readable = texts.filter((note) => note !== undefined);
      return rankPassages(query, readable, RECALL_LIMITS);
    },
    async promptText(notes = '') {
      const path = join(workspace(), notes, MEMORY_FILE);
      const stamp = await fileStamp(path);
      const known = shown.get(path);
      if (stamp !== undefined && known?.stamp === stamp) return known.text;
      const text =
        (await readNote(files, workspace(), notes + MEMORY_FILE, log))?.text.trim() ?? '';
      if (shown.size >= MAX_SHOWN) shown.clear();
      shown.set(path, { stamp, text });
      return text;
    },
  };
}

/** The notes changed last, as many as may be searched in one go. */
async function notePaths(
  files: GuardedFiles,
  root: string,
  notes: string,
): Promise<readonly string[]> {
  const folders = NOTE_FOLDERS.map((folder) => notes + folder);
  const lists = await Promise.all(folders.map((folder) => listNotes(files, root, folder)));
  const newestFirst = lists.flat().sort((a, b) => b.modifiedAt - a.modifiedAt);
  let bytes = 0;
  return newestFirst
    .filter((note) => {
      bytes += note.bytes;
      return bytes <= MAX_SEARCHED_BYTES;
    })
    .map(({ path }) => path);
}

async function listNotes(files: GuardedFiles, root: string, folder: string) {
  const listing = await files
    .list(root, folder, { maxEntries: MAX_LISTED })
    .catch((error: unknown) => {
      if (error instanceof GuardedFileError) return { entries: [] };
      throw error;
    });
  return listing.entries
    .filter(({ kind, name }) => kind === 'file' && NOTE_NAME.test(name))
    .map(({ name, bytes, modifiedAt }) => ({ path: `${folder}/${name}`, bytes, modifiedAt }));
}

/** One unreadable note must not take the others, or a whole turn, with it. */
async function readNote(
  files: GuardedFiles,
  root: string,
  path: string,
  log: Logger,
): Promise<NoteFile | undefined> {
  try {
    const content = await files.read(root, path, { maxBytes: MAX_FILE_BYTES });
    return { source: path, text: content.toString('utf8') };
  } catch (error) {
    if (!(error instanceof GuardedFileError)) throw error;
    if (error.reason !== 'not_found') log.warn('memory file left out', { path, error });
    return undefined;
  }
}
