// Updates the full-text index from the session files: only what was appended since is read, in
// bounded pieces, and entries of deleted or rewritten files are removed.

import { createHash } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createLanes } from '../../lib/async.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { TextIndex } from '../bus/store/text-index.ts';
import { type SessionKey, sessionKey } from '../message/ids.ts';
import {
  ARCHIVE_FOLDER,
  allFiles,
  keyOfFile,
  readOwnEntries,
  type StoredFile,
  storedFiles,
} from './catalog.ts';
import { orUndefined, stemOf, stemStart } from './file-lines.ts';
import type { SessionFiles } from './forget.ts';
import { indexFile, SESSION_SOURCES, sourceOf } from './index-file.ts';
import { extractHeader, extractLine } from './rules/earlier.ts';
import { formatName, parseName, type SessionFileName } from './rules/file.ts';

type SessionIndexingDeps = {
  readonly files: Pick<SessionFiles, 'folder' | 'complete'>;
  readonly index: TextIndex;
  readonly clock: Clock;
  readonly log: Logger;
  /** Other processes write, erase and index the same files. */
  readonly isShared?: boolean;
  /** Other index sources that may be gone are checked along with the files. */
  forgetOthers(): Promise<void>;
};

export type SessionIndexing = ReturnType<typeof createSessionIndexing>;

/** A search indexes first what is missing. */
const PAUSE_MS = 10_000;
/** E.g. on a full disk. */
const RETRY_MS = 60_000;
const SWEEP_EVERY_MS = 3_600_000;

export function createSessionIndexing(deps: SessionIndexingDeps) {
  const { files, index, clock, log, isShared = false } = deps;
  const { folder } = files;
  const lanes = createLanes();
  let dirty = new Set<string>();
  let generation = -1;
  let woken = Promise.withResolvers<void>();

  async function sweep(accepts: (name: SessionFileName) => boolean) {
    const anew = new Set<string>();
    for (const { path, name } of await allFiles(folder, accepts)) {
      // What later files undid or restored of an earlier one is read again.
      if (anew.has(name.stem)) index.remove(sourceOf(name));
      if (await indexOne(path, name)) anew.add(name.stem);
    }
  }

  /** Whether all of it was read; an unreadable file does not stop the others. */
  async function indexOne(path: string, name: SessionFileName): Promise<boolean> {
    try {
      return await indexFile(index, path, name);
    } catch (error) {
      if (!isOfFile(error)) throw error;
      log.warn('session file not indexed', { file: formatName(name), error });
      return false;
    }
  }

  async function sweepAll() {
    dirty = new Set();
    await forgetMissing(index, folder);
    await deps.forgetOthers();
    const begun = index.generation;
    generation = -1;
    await sweep(() => true);
    generation = begun;
  }

  async function flush() {
    if (generation !== index.generation || dirty.size > 0) await files.complete();
    if (generation !== index.generation) return sweepAll();
    const stems = dirty;
    dirty = new Set();
    if (stems.size === 0) return;
    try {
      await sweep(({ stem }) => stems.has(stem));
    } catch (error) {
      for (const stem of stems) dirty.add(stem);
      throw error;
    }
  }

  /** Of these chats also what other processes have written and erased. */
  async function flushFor(chats: readonly string[]) {
    await flush();
    if (!isShared) return;
    await files.complete();
    const starts = chats.map((chat) => stemStart(sessionKey(chat)));
    const isTheirs = ({ stem }: SessionFileName) => starts.some((start) => stem.startsWith(start));
    await forgetMissing(index, folder, isTheirs);
    await sweep(isTheirs);
  }

  const oneByOne = (task: () => Promise<void>) => lanes.run('index', task);

  async function tried(task: () => Promise<void>): Promise<boolean> {
    try {
      await oneByOne(task);
      return true;
    } catch (error) {
      log.warn('conversations not indexed', { error });
      return false;
    }
  }

  return {
    /** Marks a session with appended entries; costs nothing. */
    changed(session: SessionKey): void {
      dirty.add(stemOf(session));
      woken.resolve();
    },
    /** The file was rewritten: its indexed content is no longer valid. */
    rewritten(name: SessionFileName): void {
      index.remove(sourceOf(name));
      dirty.add(name.stem);
      woken.resolve();
    },
    /** Resolves when everything appended before can be found. @throws if the index is not usable */
    flush: () => oneByOne(flush),
    /** The same for what may be found in these chats, by whichever process it was written. */
    flushFor: (chats: readonly string[]) => oneByOne(() => flushFor(chats)),
    /** Indexes what is missing, then follows what is appended. */
    async run(signal: AbortSignal): Promise<void> {
      let sweptAt = Number.NEGATIVE_INFINITY;
      while (!signal.aborted) {
        woken = Promise.withResolvers<void>();
        const isDue = clock.monotonic() - sweptAt >= SWEEP_EVERY_MS;
        const isDone = await tried(isDue ? sweepAll : flush);
        if (isDue) sweptAt = clock.monotonic();
        if (dirty.size === 0) await untilWoken(woken.promise, clock, signal);
        await clock.sleep(isDone ? PAUSE_MS : RETRY_MS, signal).catch(() => undefined);
      }
    },
  };
}

/** Removes from the index what is in no file any more. */
export async function forgetMissing(
  index: TextIndex,
  folder: string,
  accepts: (name: SessionFileName) => boolean = () => true,
): Promise<void> {
  for (const name of index.sources(SESSION_SOURCES)) {
    const file = name.slice(SESSION_SOURCES.length);
    const parsed = parseName(file);
    if (parsed !== undefined && !accepts(parsed)) continue;
    const places = [join(folder, file), join(folder, ARCHIVE_FOLDER, file)];
    const found = await Promise.all(places.map((path) => stat(path).catch(orUndefined('ENOENT'))));
    if (found.every((info) => info === undefined)) index.remove(name);
  }
}

/** A read error names no path. */
const isOfFile = (error: unknown) => error instanceof Error && 'syscall' in error;

async function untilWoken(woken: Promise<void>, clock: Clock, signal: AbortSignal): Promise<void> {
  const stop = new AbortController();
  const slept = clock.sleep(SWEEP_EVERY_MS, AbortSignal.any([signal, stop.signal]));
  await Promise.race([slept.catch(() => undefined), woken]);
  stop.abort();
}

// Makes conversations searchable for the agent: an extract of each session file as
// memory/sessions/SESSION_<hash>.md in the workspace, where recall searches. Only on the owner's
// command, because memory is shared by all chats.

const EXTRACT_FOLDER = join('memory', 'sessions');
const EXTRACT_NAME = /^SESSION_[0-9a-f]{16}\.md$/;
/** Longest extract, characters. */
const MAX_EXTRACT_CHARS = 100_000;
const HASH_CHARS = 16;

/** Writes the extracts that are missing or older than their session file. */
export async function writeExtracts(
  folder: string,
  workspace: string,
): Promise<{ readonly written: number; readonly present: number }> {
  const files = createGuardedFiles();
  let written = 0;
  let present = 0;
  for (const file of await storedFiles(folder)) {
    const path = extractPath(file.name);
    const existing = await stat(join(workspace, path)).catch(orUndefined('ENOENT'));
    if (existing !== undefined && existing.mtimeMs >= file.modifiedAt) present += 1;
    else {
      await files.write(workspace, path, await extract(file));
      written += 1;
    }
  }
  return { written, present };
}

/** Deletes the extract of one session file, if there is one. */
export async function removeExtract(workspace: string, name: SessionFileName): Promise<void> {
  await rm(join(workspace, extractPath(name)), { force: true });
}

export async function removeAllExtracts(workspace: string): Promise<void> {
  const folder = join(workspace, EXTRACT_FOLDER);
  const names = (await readdir(folder).catch(orUndefined('ENOENT'))) ?? [];
  for (const name of names) {
    if (EXTRACT_NAME.test(name)) await rm(join(folder, name), { force: true });
  }
}

function extractPath(name: SessionFileName): string {
  const hash = createHash('sha256').update(formatName(name)).digest('hex').slice(0, HASH_CHARS);
  return join(EXTRACT_FOLDER, `SESSION_${hash}.md`);
}

async function extract(file: StoredFile): Promise<string> {
  const lines: string[] = [];
  let chars = 0;
  for await (const entry of readOwnEntries(file.path)) {
    const line = extractLine(entry);
    if (line === undefined) continue;
    chars += line.length;
    if (chars > MAX_EXTRACT_CHARS) {
      lines.push('- [truncated, the rest of the conversation omitted]');
      break;
    }
    lines.push(line);
  }
  return `${extractHeader(await keyOfFile(file), file.name.day)}${lines.join('\n')}\n`;
}
