// CONTRACT of the maintenance of session files: what `nanobot sessions` offers. All of it streams,
// so that neither one long session nor 100,000 of them fill the memory.

import { lstat, mkdir, open, realpath, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedIfMissing } from '../../lib/files/files.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { type SessionKey, sessionKey } from '../message/ids.ts';
import {
  ARCHIVE_FOLDER,
  byStem,
  keyOfFile,
  listSessions,
  pageOfSessions,
  readSession,
  type StoredFile,
  storedFiles,
} from './catalog.ts';
import { type SessionSearch, searchSessions } from './earlier.ts';
import { DAMAGED_SUFFIX, stemOf } from './file-lines.ts';
import { ofChats, type SessionFiles } from './forget.ts';
import { INDEX_FOLDER } from './index-file.ts';
import { removeAllExtracts, removeExtract, writeExtracts } from './index-sessions.ts';
import { purgeRequests, removeAllRequests, removeRequests } from './request-log.ts';
import { markdownOfEntry } from './rules/earlier.ts';
import {
  decodeLine,
  encodeEntry,
  encodeHeader,
  encodeKey,
  formatName,
  type SessionFileName,
} from './rules/file.ts';

export type FileCount = { readonly files: number; readonly bytes: number };

type ArchiveReport = {
  readonly moved: FileCount;
  /** What is in the folder after the move. */
  readonly active: FileCount;
  readonly archived: FileCount;
};

/** The keys of chats, without topics; absent: all. */
type OfChats = { readonly chats?: readonly string[] | undefined };
export type Aged = OfChats & { readonly olderThanMs: number };

// Exports a conversation as text for people (Markdown) or programs (JSONL), in pieces. The JSONL
// form is that of the session files: one header, then one entry a line.

export async function* exportSession(
  folder: string,
  key: SessionKey,
  format: 'md' | 'jsonl',
): AsyncGenerator<string, void, void> {
  let isFirst = true;
  for await (const entry of readSession(folder, stemOf(key))) {
    if (isFirst) {
      const header = encodeHeader({ key, createdAt: entry.at, carried: 0 });
      yield format === 'md' ? `# ${key}\n` : `${header}\n`;
    }
    isFirst = false;
    yield format === 'md' ? markdownOfEntry(entry) : `${encodeEntry(entry)}\n`;
  }
}

// Combines the maintenance of session files for the command line.

type SessionMaintenanceDeps = {
  /** The sessions folder of the home. */
  readonly folder: string;
  readonly workspace: string;
  readonly clock: Clock;
};

export function createSessionMaintenance(deps: SessionMaintenanceDeps) {
  const { folder, workspace, clock } = deps;
  return {
    /** Newest first; messages are counted only for the sessions returned. */
    list: ({ limit, chats }: OfChats & { readonly limit?: number } = {}) =>
      listSessions(folder, limit, ofThese(chats)),
    page: (of: { readonly offset: number; readonly limit: number }) => pageOfSessions(folder, of),
    /** The whole conversation, including the archive, in pieces to be written in sequence. */
    export: (session: SessionKey, format: 'md' | 'jsonl') => exportSession(folder, session, format),
    /** Case-insensitive text search over all sessions, newest file first. */
    search: (query: string, { chats, ...of }: OfChats & Omit<SessionSearch, 'accepts'>) =>
      searchSessions(folder, query, { ...of, accepts: ofThese(chats) }),
    /** What `purge` deletes. */
    purgeable: async ({ olderThanMs, chats }: Aged): Promise<FileCount> =>
      count(await oldFiles(folder, clock.now() - olderThanMs, ofThese(chats))),
    /** Deletes files whose last entry is older, including archived ones, and their extracts. */
    purge: ({ olderThanMs, chats }: Aged) =>
      purgeFiles(folder, workspace, clock.now() - olderThanMs, ofThese(chats)),
    /** Moves files whose last entry is older to `archive/`, but never the newest of a session. */
    archive: ({ olderThanMs, chats }: Aged) =>
      archiveFiles(folder, clock.now() - olderThanMs, ofThese(chats)),
    /** Deletes every session, including the archive and the extracts. */
    nuke: () => nukeFiles(folder, workspace),
    /**
     * Writes a searchable extract to `memory/sessions/` for each session file without a current
     * one.
     */
    index: () => writeExtracts(folder, workspace),
  };
}

// Deletes and archives session files. The gateway may be running: it notices a deleted file before
// its next turn, and the newest file of a session is never archived.

const TAIL_BYTES = 64 * 1024;

type Accepts = (name: SessionFileName) => boolean;

const ofThese = (chats: readonly string[] | undefined): Accepts =>
  chats === undefined ? () => true : ofChats(chats);

/** Deletes files whose last entry is older than `before` (epoch ms), including archived ones. */
async function purgeFiles(
  folder: string,
  workspace: string,
  before: number,
  accepts: Accepts,
): Promise<FileCount> {
  const old = await oldFiles(folder, before, accepts);
  for (const { path, name } of old) {
    await removeExtract(workspace, name);
    await removeFile(path);
  }
  await purgeRequests(folder, new Set(old.map(({ name }) => name.stem)), before);
  return count(old);
}

async function oldFiles(folder: string, before: number, accepts: Accepts) {
  const files = [
    ...(await storedFiles(folder, accepts)),
    ...(await archivedFiles(folder, accepts)),
  ];
  return filterOld(files, before);
}

/** Moves old files to `archive/`, except the newest of each session. */
async function archiveFiles(
  folder: string,
  before: number,
  accepts: Accepts,
): Promise<ArchiveReport> {
  const groups = byStem(await storedFiles(folder, accepts));
  const replaced = [...groups.values()].flatMap((files) => files.slice(0, -1));
  const old = await filterOld(replaced, before);
  const archive = join(folder, ARCHIVE_FOLDER);
  await mkdir(archive, { recursive: true, mode: 0o700 });
  for (const { path, name } of old) {
    // A relative link is only valid at its place.
    if ((await lstat(path)).isSymbolicLink()) continue;
    const target = join(archive, formatName(name));
    await rename(path, target);
    await rename(`${path}${DAMAGED_SUFFIX}`, `${target}${DAMAGED_SUFFIX}`).catch(
      undefinedIfMissing,
    );
  }
  return {
    moved: count(old),
    active: count(await storedFiles(folder, accepts)),
    archived: count(await archivedFiles(folder, accepts)),
  };
}

/** Deletes every session file, the archive, the index and the extracts in the workspace. */
async function nukeFiles(
  folder: string,
  workspace: string,
): Promise<FileCount & { readonly sessions: number }> {
  const files = [...(await storedFiles(folder)), ...(await archivedFiles(folder))];
  for (const { path } of files) await removeFile(path);
  await removeAllExtracts(workspace);
  await rm(join(folder, ARCHIVE_FOLDER), { recursive: true, force: true });
  await rm(join(folder, INDEX_FOLDER), { recursive: true, force: true });
  await removeAllRequests(folder);
  return { ...count(files), sessions: byStem(files).size };
}

const archivedFiles = (folder: string, accepts?: Accepts) =>
  storedFiles(join(folder, ARCHIVE_FOLDER), accepts);

function count(files: readonly StoredFile[]): FileCount {
  return { files: files.length, bytes: files.reduce((sum, file) => sum + file.bytes, 0) };
}

/** Deletes a session file, and the target of a link. */
async function removeFile(path: string): Promise<void> {
  await rm(await realpath(path).catch(() => path), { force: true });
  await rm(path, { force: true });
  await rm(`${path}${DAMAGED_SUFFIX}`, { force: true });
}

/** The time in the file counts, because copying changes that of the file system. */
async function filterOld(
  files: readonly StoredFile[],
  before: number,
): Promise<readonly StoredFile[]> {
  const old: StoredFile[] = [];
  for (const file of files) {
    // An unreadable file must not stop the others.
    const last = (await lastEntryAt(file).catch(() => undefined)) ?? file.modifiedAt;
    if (last < before) old.push(file);
  }
  return old;
}

/** Time of the last entry; undefined if the end of the file contains none. */
async function lastEntryAt(file: StoredFile): Promise<number | undefined> {
  await using handle = await open(file.path, 'r');
  const buffer = Buffer.alloc(Math.min(TAIL_BYTES, file.bytes));
  const { bytesRead } = await handle.read(buffer, 0, buffer.length, file.bytes - buffer.length);
  const lines = buffer.subarray(0, bytesRead).toString('utf8').split('\n');
  return lines
    .reverse()
    .map(decodeLine)
    .find((decoded) => decoded.kind === 'entry')?.entry.at;
}

// Deletes old files of conversations that are not used again. The gateway may be running: a file in
// use is left alone.

type LeftoverRule = {
  /** Of these conversations. */
  readonly channel: string;
  /** Files last written before are deleted, epoch milliseconds. */
  readonly before: number;
  /** The newest file of such a conversation stays. */
  isInUse(session: SessionKey): boolean;
};

/** Number of deleted files; `left` are conversations that still have some. */
export async function deleteLeftovers(
  { folder, complete, exclusively }: SessionFiles,
  { channel, before, isInUse }: LeftoverRule,
): Promise<{ readonly deleted: number; readonly left: ReadonlySet<SessionKey> }> {
  const unwritten = await complete();
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
    const kept = unwritten.has(key) ? files : isInUse(key) ? files.slice(-1) : [];
    const old = files.filter((file) => file.modifiedAt < before && !kept.includes(file));
    if (old.length > 0) await exclusively(key, () => removeAll(old));
    deleted += old.length;
    if (old.length < files.length) left.add(key);
    else await removeRequests(folder, first.name.stem);
  }
  return { deleted, left };
}

async function removeAll(files: readonly StoredFile[]): Promise<void> {
  for (const { path } of files) await removeFile(path);
}
