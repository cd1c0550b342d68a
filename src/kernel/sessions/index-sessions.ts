// Updates the full-text index from the session files: only what was appended since is read, in
// bounded pieces, and entries of deleted or rewritten files are removed.

import { hash } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createLanes, inTime } from '../../lib/async.ts';
import { undefinedIfMissing } from '../../lib/files/files.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import type { Logger } from '../../lib/logger.ts';
import { type Clock, sleepOrWoken } from '../../lib/time/clock.ts';
import type { IndexChange, IndexState, TextIndex } from '../bus/store/text-index.ts';
import { type SessionKey, sessionKey } from '../message/ids.ts';
import {
  ARCHIVE_FOLDER,
  allFiles,
  type FilePlace,
  keyOfFile,
  readOwnEntries,
  type StoredFile,
  storedFiles,
} from './catalog.ts';
import { stemOf, stemStart } from './file-lines.ts';
import type { SessionFiles } from './forget.ts';
import { exists, indexFile, PARTS_AT_ONCE, SESSION_SOURCES, sourceOf } from './index-file.ts';
import { extractHeader, extractLine } from './rules/earlier.ts';
import { formatName, type SessionFileName } from './rules/file.ts';

type SessionIndexingDeps = {
  readonly files: Pick<SessionFiles, 'folder' | 'complete'>;
  readonly index: TextIndex;
  readonly clock: Clock;
  readonly log: Logger;
  /** Other processes write and index the same files, in the same index. */
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
/** At the end of the process. */
const LAST_MS = 3000;
/** Beyond so many conversations the states of all are read at once. */
const MAX_LOOK_UPS = 20;
/** Looked for in a few milliseconds, between which other work runs. */
const FILES_AT_ONCE = 1000;

export function createSessionIndexing(deps: SessionIndexingDeps) {
  const { files, index, clock, log, isShared = false } = deps;
  const { folder } = files;
  const lanes = createLanes();
  let dirty = new Set<string>();
  /** What several processes share does not wait for each of them to look at all of it. */
  let generation = isShared ? index.generation : -1;
  let woken = Promise.withResolvers<void>();

  /** @param known of all files that are accepted */
  async function sweep(
    accepts: (name: SessionFileName) => boolean,
    known: ReadonlyMap<string, IndexState>,
  ) {
    const anew = new Set<string>();
    /** What is written next: of each conversation one file, so that later ones see its turns. */
    const read = new Map<string, FilePlace & { readonly rest: IndexChange }>();
    /** Files and parts since other work ran. */
    let steps = 0;
    /** An unreadable file does not stop the others. */
    async function readOne({ path, name }: FilePlace, state: IndexState | undefined) {
      try {
        const { isAnew, rest } = await indexFile(index, path, name, state);
        if (isAnew) anew.add(name.stem);
        if (rest !== undefined) read.set(name.stem, { path, name, rest });
        steps += 1 + (rest?.parts.length ?? 0);
      } catch (error) {
        if (!isOfFile(error)) throw error;
        log.warn('session file not indexed', { file: formatName(name), error });
      }
    }
    async function write() {
      while (read.size > 0) {
        const files = [...read.values()];
        read.clear();
        const written = await index.put(files.map(({ rest }) => rest));
        for (const file of files) {
          const source = sourceOf(file.name);
          // Where another process was faster, this one continues behind it.
          if (!written.has(source)) await readOne(file, await index.state(source));
          // Another process may have deleted it, and its entries in the index before these were there.
          else if (!isStored(folder, formatName(file.name))) await index.remove(source);
        }
      }
      steps = 0;
      await nextTurn();
    }
    for (const file of await allFiles(folder, accepts)) {
      const { stem } = file.name;
      if (read.has(stem) || steps >= PARTS_AT_ONCE) await write();
      const source = sourceOf(file.name);
      // What later files undid or restored of an earlier one is read again.
      if (anew.has(stem)) await index.remove(source);
      await readOne(file, anew.has(stem) ? undefined : known.get(source));
    }
    await write();
  }

  async function sweepAll() {
    await files.complete();
    dirty = new Set();
    await forgetMissing(index, folder);
    await deps.forgetOthers();
    const begun = index.generation;
    generation = -1;
    await sweep(() => true, await index.states(SESSION_SOURCES));
    generation = begun;
  }

  async function flush() {
    if (generation !== index.generation) return sweepAll();
    const stems = dirty;
    dirty = new Set();
    if (stems.size === 0) return;
    try {
      await files.complete();
      await sweepStems([...stems], ({ stem }) => stems.has(stem));
    } catch (error) {
      for (const stem of stems) dirty.add(stem);
      throw error;
    }
  }

  async function sweepStems(
    starts: readonly string[],
    accepts: (name: SessionFileName) => boolean,
  ): Promise<void> {
    const known = new Map<string, IndexState>();
    for (const start of starts.length > MAX_LOOK_UPS ? [''] : starts) {
      for (const [name, state] of await index.states(SESSION_SOURCES + start)) {
        known.set(name, state);
      }
    }
    await sweep(accepts, known);
  }

  /** Of these chats also what other processes have written in the last seconds. */
  async function flushFor(chats: readonly string[]) {
    await flush();
    if (!isShared) return;
    await files.complete();
    const starts = chats.map((chat) => stemStart(sessionKey(chat)));
    await sweepStems(starts, ({ stem }) => starts.some((start) => stem.startsWith(start)));
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

  const pause = (ms: number, signal: AbortSignal) => clock.sleep(ms, signal).catch(() => undefined);

  return {
    /** Marks a session with appended entries; costs nothing. */
    changed(session: SessionKey): void {
      dirty.add(stemOf(session));
      woken.resolve();
    },
    /** The file was rewritten: its indexed content is no longer valid. */
    async rewritten(name: SessionFileName): Promise<void> {
      dirty.add(name.stem);
      woken.resolve();
      await index.remove(sourceOf(name));
    },
    /** Resolves when everything appended before can be found. @throws if the index is not usable */
    flush: () => oneByOne(flush),
    /** The same for what may be found in these chats, by whichever process it was written. */
    flushFor: (chats: readonly string[]) => oneByOne(() => flushFor(chats)),
    /** Follows what this process appends. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        if (dirty.size === 0) await sleepOrWoken(clock, SWEEP_EVERY_MS, woken.promise, signal);
        woken = Promise.withResolvers<void>();
        const isDone = await tried(flush);
        await pause(isDone ? PAUSE_MS : RETRY_MS, signal);
      }
    },
    /** What this process appended last; the others do not know of it. */
    async [Symbol.asyncDispose](): Promise<void> {
      if (isShared && dirty.size > 0) await inTime(clock, LAST_MS, tried(flush));
    },
    /** Indexes what is missing and removes what is gone; of several processes one does. */
    async runSweeps(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const isDone = await tried(sweepAll);
        await pause(isDone ? SWEEP_EVERY_MS : RETRY_MS, signal);
      }
    },
  };
}

/** Removes from the index what is in no file any more. */
export async function forgetMissing(index: TextIndex, folder: string): Promise<void> {
  const names = [...(await index.states(SESSION_SOURCES)).keys()];
  for (const [at, name] of names.entries()) {
    if (at % FILES_AT_ONCE === 0) await nextTurn();
    const file = name.slice(SESSION_SOURCES.length);
    if (!isStored(folder, file)) await index.remove(name);
  }
}

const isStored = (folder: string, file: string) =>
  exists(join(folder, file)) || exists(join(folder, ARCHIVE_FOLDER, file));

/** A read error names no path. */
const isOfFile = (error: unknown) => error instanceof Error && 'syscall' in error;

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
    const existing = await stat(join(workspace, path)).catch(undefinedIfMissing);
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
  const names = (await readdir(folder).catch(undefinedIfMissing)) ?? [];
  for (const name of names) {
    if (EXTRACT_NAME.test(name)) await rm(join(folder, name), { force: true });
  }
}

function extractPath(name: SessionFileName): string {
  const short = hash('sha256', formatName(name)).slice(0, HASH_CHARS);
  return join(EXTRACT_FOLDER, `SESSION_${short}.md`);
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
