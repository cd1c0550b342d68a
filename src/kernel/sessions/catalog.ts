// The contents of the sessions folder: files by session, their sizes and times, and every entry of
// a session from the oldest file on. Reads only.

import { type FileHandle, open, opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { mapLimited } from '../../lib/async.ts';
import { systemCode, undefinedIfMissing } from '../../lib/files/files.ts';
import { type SessionKey, sessionKey } from '../message/ids.ts';
import type { TranscriptEntry } from '../message/transcript.ts';
import { readDecoded, reasonOf } from './file-lines.ts';
import {
  compareAge,
  decodeStem,
  formatName,
  MESSAGE_LINE_STARTS,
  parseName,
  type SessionFileName,
} from './rules/file.ts';

export const ARCHIVE_FOLDER = 'archive';
const MAX_OPEN_AT_ONCE = 8;

export type StoredFile = {
  readonly path: string;
  readonly name: SessionFileName;
  readonly bytes: number;
  /** Epoch milliseconds. */
  readonly modifiedAt: number;
};

type SessionInfo = {
  readonly key: SessionKey;
  readonly files: number;
  readonly bytes: number;
  readonly messages: number;
  /** Epoch milliseconds, as is `updatedAt`. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Why a file of it cannot be read. */
  readonly problem?: string;
};

/** Names of session files, oldest first; empty if the folder is missing. */
export async function sessionNames(
  folder: string,
  accepts: (name: SessionFileName) => boolean = () => true,
): Promise<readonly SessionFileName[]> {
  const names: SessionFileName[] = [];
  const entries = await opendir(folder, { bufferSize: 1024 }).catch(undefinedIfMissing);
  if (entries === undefined) return names;
  for await (const entry of entries) {
    // A link to a file elsewhere is appended to like any other, so it is listed and erased too.
    const isFile = entry.isFile() || entry.isSymbolicLink();
    const name = isFile ? parseName(entry.name) : undefined;
    if (name !== undefined && accepts(name)) names.push(name);
  }
  return names.sort(compareAge);
}

/** Files with size and time, oldest name first; omits files deleted meanwhile. */
export async function storedFiles(
  folder: string,
  accepts?: (name: SessionFileName) => boolean,
): Promise<readonly StoredFile[]> {
  const names = await sessionNames(folder, accepts);
  const found = await mapLimited(names, MAX_OPEN_AT_ONCE, async (name) => {
    const path = join(folder, formatName(name));
    const info = await stat(path).catch(undefinedIfMissing);
    return info?.isFile() && { path, name, bytes: info.size, modifiedAt: info.mtimeMs };
  });
  return found.filter((file) => typeof file === 'object');
}

export function byStem(files: readonly StoredFile[]): ReadonlyMap<string, readonly StoredFile[]> {
  return Map.groupBy(files, (file) => file.name.stem);
}

/** Newest first. Messages are counted only for the returned sessions. */
export async function listSessions(
  folder: string,
  limit = Number.POSITIVE_INFINITY,
  accepts?: (name: SessionFileName) => boolean,
): Promise<readonly SessionInfo[]> {
  return (await pageOfSessions(folder, { offset: 0, limit }, accepts)).sessions;
}

/** Some of them, and how many there are. */
export async function pageOfSessions(
  folder: string,
  { offset, limit }: { readonly offset: number; readonly limit: number },
  accepts?: (name: SessionFileName) => boolean,
): Promise<{ readonly sessions: readonly SessionInfo[]; readonly total: number }> {
  const groups = [...byStem(await storedFiles(folder, accepts)).entries()]
    .map(([stem, files]) => ({ stem, files, updatedAt: latest(files) }))
    .sort((a, b) => b.updatedAt - a.updatedAt || compareNewest(b.files, a.files));
  const sessions = await mapLimited(
    groups.slice(offset, offset + limit),
    MAX_OPEN_AT_ONCE,
    ({ stem, files }) => describe(stem, files),
  );
  return { sessions, total: groups.length };
}

/** File times may be as coarse as some milliseconds. */
function compareNewest(a: readonly StoredFile[], b: readonly StoredFile[]): number {
  const [first, second] = [a.at(-1), b.at(-1)];
  return first === undefined || second === undefined ? 0 : compareAge(first.name, second.name);
}

const latest = (files: readonly StoredFile[]) => Math.max(...files.map((file) => file.modifiedAt));

async function describe(stem: string, files: readonly StoredFile[]): Promise<SessionInfo> {
  const [first] = files;
  // A file that cannot be read is listed without its messages, one that was deleted as empty.
  let problem: string | undefined;
  const unreadable = (error: unknown) => {
    if (systemCode(error) !== 'ENOENT') problem ??= reasonOf(error);
  };
  const header = first && (await readHeader(first.path).catch(unreadable));
  let messages = 0;
  for (const file of files) messages += (await countMessages(file).catch(unreadable)) ?? 0;
  return {
    key: header?.key ?? decodeStem(stem) ?? sessionKey(stem),
    files: files.length,
    bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    messages,
    createdAt: header?.createdAt ?? first?.modifiedAt ?? 0,
    updatedAt: latest(files),
    ...(problem === undefined ? {} : { problem }),
  };
}

async function readHeader(path: string) {
  for await (const line of readDecoded(path)) {
    return line.kind === 'header' ? line.header : undefined;
  }
  return undefined;
}

/** The session of a file. */
export async function keyOfFile(file: FilePlace): Promise<SessionKey> {
  const { stem } = file.name;
  return decodeStem(stem) ?? (await readHeader(file.path))?.key ?? sessionKey(stem);
}

const COUNTED_STARTS = MESSAGE_LINE_STARTS.map((start) => Buffer.from(`\n${start}`));
const MAX_COUNT_CHUNK_BYTES = 256 * 1024;
const OVERLAP_BYTES = Math.max(...COUNTED_STARTS.map((start) => start.length)) - 1;

/** Counts by the start of lines, without parsing them. */
async function countMessages({ path, bytes }: StoredFile): Promise<number> {
  await using file = await open(path, 'r');
  return await countLineStarts(file, Math.min(bytes, MAX_COUNT_CHUNK_BYTES));
}

async function countLineStarts(file: FileHandle, chunkBytes: number): Promise<number> {
  const buffer = Buffer.allocUnsafe(OVERLAP_BYTES + chunkBytes);
  let kept = 0;
  let messages = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, kept, chunkBytes);
    if (bytesRead === 0) return messages;
    const filled = buffer.subarray(0, kept + bytesRead);
    for (const start of COUNTED_STARTS) messages += endingBehind(kept, filled, start);
    const overlap = Math.min(OVERLAP_BYTES, filled.length);
    filled.copy(buffer, 0, filled.length - overlap);
    kept = overlap;
  }
}

/** How often the pattern ends after the bytes that were searched already. */
function endingBehind(searched: number, text: Buffer, pattern: Buffer): number {
  let count = 0;
  let at = text.indexOf(pattern, Math.max(0, searched - pattern.length + 1));
  while (at >= 0) {
    count += 1;
    at = text.indexOf(pattern, at + pattern.length);
  }
  return count;
}

export type FilePlace = Pick<StoredFile, 'path' | 'name'>;

/** Archived files first, then those of the folder, each oldest first. */
export async function allFiles(
  folder: string,
  accepts?: (name: SessionFileName) => boolean,
): Promise<readonly FilePlace[]> {
  const places = [join(folder, ARCHIVE_FOLDER), folder];
  const found = places.map(async (place) =>
    (await sessionNames(place, accepts)).map((name) => ({
      path: join(place, formatName(name)),
      name,
    })),
  );
  return (await Promise.all(found)).flat();
}

/** Every entry of the session once, oldest first, including archived files. */
export async function* readSession(
  folder: string,
  stem: string,
): AsyncGenerator<TranscriptEntry, void, void> {
  for (const { path } of await allFiles(folder, (name) => name.stem === stem)) {
    yield* readOwnEntries(path);
  }
}

/** The entries of one file without those carried over; skips damaged lines. */
export async function* readOwnEntries(path: string): AsyncGenerator<TranscriptEntry, void, void> {
  for await (const line of readDecoded(path)) {
    if (line.kind === 'entry' && !line.carried) yield line.entry;
  }
}
