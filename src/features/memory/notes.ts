// Stores memory as Markdown files that a person can read and edit: memory/MEMORY.md for facts, and
// notes by day and by session. rules/memory-notes.ts defines the format of the lines.

import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MEMORY_FILE } from '../../agent/rules/prompt.ts';
import type { TextIndex } from '../../kernel/bus/store/text-index.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../../kernel/message/untrusted.ts';
import { daysBack, isoTime } from '../../kernel/sessions/rules/file.ts';
import { forgetLines, type Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { mapLimited, RecentMap } from '../../lib/async.ts';
import { fileStamp } from '../../lib/files/files.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import { defined } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { keepLastLines } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createDayText, createMinuteText } from '../../lib/time/zone-time.ts';
import type { FoundFile } from '../../tools/search/search-files.ts';
import {
  addFact,
  addLearnings,
  addNote,
  type LearningLine,
  type NoteFile,
  type Passage,
  passagesOf,
  type RecallLimits,
  rankPassages,
  withinLimits,
} from './rules/memory-notes.ts';

type FileMemoryDeps = NoteReader & {
  readonly clock: Clock;
  /** IANA zone of dates; empty = the machine's. */
  readonly timeZone: () => string;
  /** Without an index, or where it finds nothing, the newest notes are scanned. */
  readonly index?: TextIndex;
};

export const LEARNINGS_FILE = 'memory/learnings.jsonl';

const MAX_FACT_CHARS = 2000;
/** Ranking this much takes about a tenth of a second, in which the event loop is blocked. */
const MAX_SEARCHED_BYTES = 1_000_000;
const MAX_READ_AT_ONCE = 4;
/** Number of prompt texts cached for the next turn. */
const MAX_SHOWN = 64;
/** Days whose notes are in the prompt. */
const SHOWN_DAYS = 3;
const MAX_NOTES_CHARS = 800;
const RECALL_LIMITS = { maxHits: 5, maxChars: 8000 };
const DAY_MS = 86_400_000;

/** Stored among the extracts of conversations, so that reading it taints the conversation. */
const UNTRUSTED_FILE = 'memory/sessions/SESSION_untrusted.md';
const lineHash = (line: string) => hash('sha256', line).slice(0, 32);

type ShownMemory = { readonly stamps: string; readonly text: string };

/** The notes folder, see `TurnPerson`. */
type NotesOf = {
  readonly notes: string;
  /** IANA zone that defines the day; default: the configured one. */
  readonly timeZone?: string | undefined;
};

/** An outcome, for the next reflection. */
export type Learning = Omit<LearningLine, 'timestamp' | 'tool_name'> & {
  readonly tool?: string;
};

export type MemoryStore = ReturnType<typeof createFileMemory>;

/**
 * Memory, which outlasts a conversation. Each person and each group has notes of its own, see
 * kernel/message/untrusted.ts; `notes`: their folder, default: the owner's.
 */
export function createFileMemory(deps: FileMemoryDeps) {
  const { files, workspace, log, clock, index } = deps;
  const dayOf = createDayText();
  const minuteOf = createMinuteText();
  /** By notes folder: read at every turn, changed rarely. */
  const shown = new RecentMap<string, ShownMemory>(MAX_SHOWN);

  async function add(path: string, text: string, change: (before: string) => string | undefined) {
    if (text.trim() === '' || text.length > MAX_FACT_CHARS) {
      throw new NanobotError('fact_refused', t`a fact has 1 to ${MAX_FACT_CHARS} characters`);
    }
    let isNew = false;
    const changed = (content: Buffer | undefined) => {
      const after = change(content?.toString('utf8') ?? '');
      isNew = after !== undefined;
      return after;
    };
    await files.update(workspace(), path, changed, { maxBytes: MAX_NOTE_BYTES });
    return isNew ? ('added' as const) : ('known' as const);
  }

  async function indexed(words: string, notes: string): Promise<readonly Passage[]> {
    if (index === undefined) return [];
    try {
      return await findNotes(index, deps, { words, notes, now: clock.now() }, RECALL_LIMITS);
    } catch (error) {
      log.warn('notes searched without the index', { error });
      return [];
    }
  }

  /** Includes every day that is today or recent in any time zone. */
  const shownDays = () => daysBack(dayOf(clock.now() + DAY_MS, deps.timeZone()), SHOWN_DAYS + 1);

  return {
    /** Adds one fact. `known`: an identical one exists, nothing was written. */
    remember(fact: string, notes = '') {
      const day = dayOf(clock.now(), deps.timeZone());
      return add(notes + MEMORY_FILE, fact, (before) => addFact(before, fact, day));
    },
    /** Adds one line to the notes of the person's day. */
    note(text: string, { notes, timeZone = deps.timeZone() }: NotesOf) {
      const [day = '', time = ''] = minuteOf(clock.now(), timeZone).split(' ');
      const path = `${notes}memory/${day}.md`;
      return add(path, text, (before) => addNote(before, text, { day, time }));
    },
    /**
     * Stores a line that untrusted content may have influenced: it is in no prompt, and `recall`
     * returns it as an extract of a conversation. Returns the id for taking it back; undefined: the
     * line exists already.
     */
    async noteUntrusted(text: string, { notes, timeZone = deps.timeZone() }: NotesOf) {
      const [day = '', time = ''] = minuteOf(clock.now(), timeZone).split(' ');
      let line = '';
      const result = await add(notes + UNTRUSTED_FILE, text, (before) => {
        const after = addNote(before, `${day}: ${text}`, { day: t`Untrusted notes`, time });
        line = after?.trimEnd().split('\n').at(-1) ?? '';
        return after;
      });
      return result === 'known' ? undefined : `${lineHash(line)}/${notes}`;
    },
    /** Whether the line existed. */
    async takeBackUntrusted(id: string) {
      const [hash = '', ...notes] = id.split('/');
      let wasThere = false;
      const change = (content: Buffer | undefined) => {
        const lines = content?.toString('utf8').split('\n') ?? [];
        const kept = lines.filter((line) => lineHash(line) !== hash);
        wasThere = kept.length < lines.length;
        return wasThere ? kept.join('\n') : undefined;
      };
      const path = notes.join('/') + UNTRUSTED_FILE;
      await files.update(workspace(), path, change, { maxBytes: MAX_NOTE_BYTES });
      return wasThere;
    },
    async learn(learnings: readonly Learning[], { notes }: NotesOf) {
      const now = clock.now();
      const lines = learnings.map(({ tool, ...rest }) => ({
        ...{ timestamp: isoTime(now), ...rest },
        ...defined({ tool_name: tool }),
      }));
      const change = (content: Buffer | undefined) =>
        addLearnings(content?.toString('utf8') ?? '', lines, now);
      const path = notes + LEARNINGS_FILE;
      await files.update(workspace(), path, change, { maxBytes: MAX_NOTE_BYTES });
    },
    /** The best matches first, limited in number and size. */
    async recall(query: string, notes = ''): Promise<readonly Passage[]> {
      const found = await indexed(query, notes);
      if (found.length > 0) return found;
      const read = ({ path }: FoundFile) => readNote(deps, path);
      const newest = longTermFirst(await listNotes(deps, notes), notes);
      const texts = await mapLimited(bounded(newest), MAX_READ_AT_ONCE, read);
      const readable = texts.filter((note) => note !== undefined);
      return rankPassages(query, readable, RECALL_LIMITS);
    },
    /** The long-term memory and the notes of the last days, as they go into the system prompt. */
    async promptText(notes = '') {
      // Most people have no notes.
      if (!existsSync(join(workspace(), notes, 'memory'))) return '';
      const days = shownDays().map((day) => `${notes}memory/${day}.md`);
      const paths = [notes + MEMORY_FILE, ...days];
      const found = paths.map((path) => fileStamp(join(workspace(), path)));
      const stamps = found.map((stamp, at) => `${paths[at]} ${stamp}`).join('\n');
      const known = shown.get(notes);
      if (known?.stamps === stamps) return known.text;
      const there = paths.filter((_path, at) => found[at] !== undefined);
      const text = await promptOf(deps, notes + MEMORY_FILE, there);
      shown.set(notes, { stamps, text });
      return text;
    },
  };
}

async function promptOf(reader: NoteReader, longTerm: string, paths: readonly string[]) {
  const texts = await Promise.all(paths.map((path) => readNote(reader, path)));
  const readable = texts.filter((note) => note !== undefined);
  const facts = readable.find(({ source }) => source === longTerm)?.text.trim() ?? '';
  const notes = readable.filter(({ source }) => source !== longTerm).map(({ text }) => text.trim());
  // Newest last, as in the long-term memory.
  const recent = keepLastLines(notes.reverse().join('\n\n'), MAX_NOTES_CHARS).trim();
  return [facts, ...(recent === '' ? [] : [t`# Notes of the last days\n\n${recent}`])]
    .filter((part) => part !== '')
    .join('\n\n');
}

function longTermFirst(entries: readonly FoundFile[], notes: string): readonly FoundFile[] {
  const isLongTerm = ({ path }: FoundFile) => path === notes + MEMORY_FILE;
  return [...entries.filter(isLongTerm), ...entries.filter((entry) => !isLongTerm(entry))];
}

/** As many files as one search may scan. */
function bounded(entries: readonly FoundFile[]): readonly FoundFile[] {
  let bytes = 0;
  return entries.filter((entry) => {
    bytes += entry.bytes;
    return bytes <= MAX_SEARCHED_BYTES;
  });
}

// Removes matching lines from the notes of one person: long-term memory and its backups, notes by
// day and by session, learnings.

type NotePlace = { readonly path: string; readonly line: number; readonly text: string };

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

/** Returns the number of removed lines. */
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

// A temporary file that a killed process left behind. It may hold text that was to be forgotten,
// and nothing reads it.

const TORN = /^\.nanobot-[0-9a-f-]{36}\.tmp$/;

/** Deletes those older than `before` (epoch milliseconds); newer ones may be in use. */
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

// Searches notes through the full-text index. Changed files are indexed again before the search, a
// bounded number at a time.

const PREFIX = 'notes/';
/** Changed files that are indexed before one search; the others follow with the next. */
const MAX_READ = 100;

/**
 * An empty result means that no whole word matches; words inside others are not searched.
 * @throws where the index is not usable
 */
async function findNotes(
  index: TextIndex,
  reader: NoteReader,
  query: { readonly words: string; readonly notes: string; readonly now: number },
  limits: RecallLimits,
): Promise<readonly Passage[]> {
  const { words, notes, now } = query;
  await refreshNotes(index, reader, notes);
  const found = await index.find(words, {
    scopes: [scopeOfNotes(notes)],
    limit: limits.maxHits,
    now,
  });
  const passages = found.map(({ label, place, text }) => ({ source: label, line: place, text }));
  return withinLimits(passages, limits);
}

/** Removes files that no longer exist from the index, for all people. */
export async function forgetMissingNotes(index: TextIndex, workspace: string): Promise<void> {
  for (const name of (await index.states(PREFIX)).keys()) {
    const stamp = fileStamp(join(workspace, name.slice(PREFIX.length)));
    if (stamp === undefined) await index.remove(name);
  }
}

export const scopeOfNotes = (notes: string) => `notes:${notes}`;

/** Indexes the notes in this folder that changed. */
export async function refreshNotes(
  index: TextIndex,
  reader: NoteReader,
  notes: string,
): Promise<void> {
  const entries = await listNotes(reader, notes);
  const present = new Set(entries.map(nameOf));
  const states = await index.states(`${PREFIX}${notes}memory/`);
  for (const name of states.keys()) if (!present.has(name)) await index.remove(name);
  const changed = entries.filter((entry) => states.get(nameOf(entry))?.stamp !== stampOf(entry));
  for (const entry of changed.slice(0, MAX_READ)) {
    await indexNote(index, reader, notes, entry);
  }
}

/** Those of everybody. */
export async function refreshAllNotes(index: TextIndex, reader: NoteReader): Promise<void> {
  for (const notes of await allNotes(reader)) await refreshNotes(index, reader, notes);
}

/** The notes folder of the owners, and that of each person and group. */
export async function allNotes({ workspace }: Pick<NoteReader, 'workspace'>) {
  const all = [''];
  for (const folder of [PEOPLE_FOLDER, GROUPS_FOLDER]) {
    const path = join(workspace(), folder);
    const found = await readdir(path, { withFileTypes: true }).catch(() => []);
    const names = found.flatMap((entry) => (entry.isDirectory() ? entry.name : []));
    all.push(...names.sort().map((name) => `${folder}/${name}/`));
  }
  return all;
}

async function indexNote(
  index: TextIndex,
  reader: NoteReader,
  notes: string,
  entry: FoundFile,
): Promise<void> {
  const name = nameOf(entry);
  const source = { name, scope: scopeOfNotes(notes), label: entry.path };
  const to = { stamp: stampOf(entry), position: entry.bytes };
  for (;;) {
    const from = await index.state(name);
    const read = fileStamp(join(reader.workspace(), entry.path));
    const note = await readNote(reader, entry.path);
    const parts = (note === undefined ? [] : passagesOf(note)).map(({ line, text }) => ({
      ...{ place: line, text, at: entry.modifiedAt },
      role: 'note' as const,
      isForeign: false,
    }));
    const step = { from, to, replaces: true };
    const isWritten = (await index.put([{ source, step, parts }])).has(name);
    // Another process may have changed or indexed it meanwhile.
    const isSame = read === fileStamp(join(reader.workspace(), entry.path));
    if (isSame && read === undefined) await index.remove(name);
    if (isSame && (isWritten || (await index.state(name))?.stamp === to.stamp)) return;
  }
}

const nameOf = ({ path }: FoundFile) => PREFIX + path;
const stampOf = ({ bytes, modifiedAt }: FoundFile) => `${bytes} ${modifiedAt}`;

// Lists and reads the notes of one person. A file that cannot be read does not affect the others.

export type NoteReader = {
  readonly files: GuardedFiles;
  /** Absolute path. */
  readonly workspace: () => string;
  readonly log: Logger;
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

/** The long-term memory, daily notes and session notes, newest first. */
export async function listNotes(reader: NoteReader, notes: string): Promise<readonly FoundFile[]> {
  const isNote = (name: string) => name === LONG_TERM || DAY_NOTE.test(name);
  const [own, ofSessions] = await Promise.all([
    listFiles(reader, notes + MEMORY_FOLDER, isNote),
    listFiles(reader, notes + SESSIONS_FOLDER, (name) => SESSION_NOTE.test(name)),
  ]);
  return [...own, ...ofSessions].sort((a, b) => b.modifiedAt - a.modifiedAt);
}

/** Empty where the folder does not exist. */
export async function listFiles(
  { files, workspace }: NoteReader,
  folder: string,
  accepts: (name: string) => boolean,
): Promise<readonly FoundFile[]> {
  if (!existsSync(join(workspace(), folder))) return [];
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
    if (error.reason !== 'not_found') log.warn('memory file skipped', { path, error });
    return undefined;
  }
}
