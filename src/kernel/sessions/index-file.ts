// Indexes one session file: what was said in it, without what was undone, and with what was
// restored in it. What was undone is removed from every file of the conversation.

import { hash, randomUUID } from 'node:crypto';
import { lstatSync, readlinkSync, renameSync, statSync, symlinkSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemCode, undefinedIfMissing } from '../../lib/files/files.ts';
import type { Logger } from '../../lib/logger.ts';
import type { IndexChange, IndexedPart, IndexState, TextIndex } from '../bus/store/text-index.ts';
import { firstSeqOf } from '../message/ids.ts';
import type { TranscriptEntry } from '../message/transcript.ts';
import { keyOfFile, sessionNames } from './catalog.ts';
import { readDecoded } from './file-lines.ts';
import { turnBrought, turnOf } from './rules/carry.ts';
import { daysBack, formatName, parseName, type SessionFileName } from './rules/file.ts';

/** Prefix of all sources that are session files. */
export const SESSION_SOURCES = 'session/';
const MAX_PART_CHARS = 20_000;
export const PARTS_AT_ONCE = 100;

/** Conversations of one chat, whatever the topic, are visible to the same people. */
export const scopeOfSession = (session: string) => `session:${chatOfSession(session)}`;

/** The key without the topic. */
export const chatOfSession = (session: string) => session.split('#', 1).join();

export const sourceOf = (name: SessionFileName) => SESSION_SOURCES + formatName(name);

type Indexed = {
  /** It was read from its start; otherwise only what was appended since. */
  readonly isAnew: boolean;
  /** Not written yet; absent where nothing is new. */
  readonly rest?: IndexChange;
};

/**
 * All but the rest, which may be written with those of other conversations.
 * @param known how far it is indexed already
 */
export async function indexFile(
  index: TextIndex,
  path: string,
  name: SessionFileName,
  known: IndexState | undefined,
): Promise<Indexed> {
  let isAnew = false;
  for (let state = known; ; state = await index.state(sourceOf(name))) {
    const { isTold, ...found } = await indexFrom(index, path, name, state);
    isAnew ||= found.isAnew;
    // Where another process was faster, this one continues behind it.
    if (isTold) return { ...found, isAnew };
  }
}

/** `isTold`: the index has all that was read before the rest. */
async function indexFrom(
  index: TextIndex,
  path: string,
  name: SessionFileName,
  known: IndexState | undefined,
): Promise<Indexed & { readonly isTold: boolean }> {
  const info = statSync(path, { throwIfNoEntry: false });
  if (info === undefined) return { isAnew: false, isTold: true };
  const stamp = `${info.ino}`;
  const isAnew = known === undefined || known.stamp !== stamp || known.position > info.size;
  if (!isAnew && known.position === info.size) return { isAnew, isTold: true };
  const key = await keyOfFile({ path, name });
  const source = { name: sourceOf(name), scope: scopeOfSession(key), label: key };
  let replaces = isAnew;
  let from = known;
  let position = isAnew ? 0 : known.position;
  let parts: IndexedPart[] = [];
  const carried: TranscriptEntry[] = [];
  const change = (): IndexChange => ({
    ...{ source, parts, step: { from, to: { stamp, position }, replaces } },
  });
  const write = async () => {
    const written = await index.put([change()]);
    [from, replaces, parts] = [{ stamp, position }, false, []];
    return written.has(source.name);
  };
  for await (const line of readDecoded(path, position)) {
    if (!line.terminated) break;
    position = line.start + line.length;
    if (line.kind !== 'entry') continue;
    const { entry } = line;
    if (entry.role === 'restore') {
      const turn = turnBrought(entry.brings);
      const back = carried.filter((one) => turn !== undefined && turnOf(one) === turn);
      parts.push(...back.flatMap(partsOf));
    } else if (line.carried) carried.push(entry);
    else if (entry.role === 'undo') {
      if (!(await write())) return { isAnew, isTold: false };
      await takeBack(index, name.stem, firstSeqOf(entry.undoes) ?? 0);
    } else parts.push(...partsOf(entry));
    if (parts.length < PARTS_AT_ONCE) continue;
    if (!(await write())) return { isAnew, isTold: false };
    await nextTurn();
  }
  return { isAnew, isTold: true, rest: change() };
}

/** In all files: the turn may have begun in an earlier one. */
async function takeBack(index: TextIndex, stem: string, turn: number): Promise<void> {
  for (const source of (await index.states(SESSION_SOURCES + stem)).keys()) {
    if (parseName(source.slice(SESSION_SOURCES.length))?.stem === stem) {
      await index.removePlaces(source, [turn]);
    }
  }
}

/** What a person or the agent said; tool results are left out, they are read at their origin. */
function partsOf(entry: TranscriptEntry): readonly IndexedPart[] {
  if (entry.role !== 'user' && entry.role !== 'assistant') return [];
  const { role, turnId, at } = entry;
  const isForeign = role === 'assistant' || entry.isForeign === true;
  const text = entry.text.slice(0, MAX_PART_CHARS).toWellFormed();
  if (text.trim() === '' || (role === 'assistant' && entry.isDraft === true)) return [];
  return [{ place: firstSeqOf(turnId) ?? 0, role, isForeign, text, at }];
}

// Finds the newest file of a session without listing the folder. A symbolic link per session under
// `.index/` names it; a link takes no disk block. It is created before the file, so the end of the
// program leaves at most a dangling link, which is detected; a power cut may lose a link, for which
// the names of the last days are probed. Rebuilt when it is missing.

export type NewestIndex = ReturnType<typeof createNewestIndex>;

/** After a power cut a session is found again by name on the same day and the next. */
const PROBED_DAYS = 2;
export const INDEX_FOLDER = '.index';
const COMPLETE_MARK = 'complete';

export function createNewestIndex(folder: string, log: Logger) {
  const root = join(folder, INDEX_FOLDER);
  /** Newest names that a rebuild has read but not linked yet. */
  const unlinked = new Map<string, SessionFileName>();
  let ready: Promise<void> | undefined;
  let linking: Promise<void> = Promise.resolve();
  let isClosed = false;

  async function prepare() {
    if (exists(join(root, COMPLETE_MARK))) return;
    await mkdir(root, { recursive: true, mode: 0o700 });
    for (const [stem, name] of await newestByStem(folder)) unlinked.set(stem, name);
    linking = linkAll().catch((error: unknown) => log.warn('session index incomplete', { error }));
  }

  async function linkAll() {
    for (const [stem, name] of unlinked) {
      if (isClosed) return;
      await link(root, name);
      unlinked.delete(stem);
    }
    await writeFile(join(root, COMPLETE_MARK), '', { mode: 0o600 });
  }

  /** The slow way, by reading the folder, if the link led nowhere. */
  async function rediscover(stem: string) {
    const newest = await newestOf(folder, stem);
    if (newest === undefined) await rm(linkPath(root, stem), { force: true });
    else await link(root, newest);
    return newest;
  }

  return {
    rediscover,
    async find(stem: string, today: string): Promise<SessionFileName | undefined> {
      ready ??= prepare().catch((error: unknown) => {
        ready = undefined;
        throw error;
      });
      await ready;
      const linked = unlinked.get(stem) ?? readLink(root, stem);
      const recent = newestOfLastDays(folder, stem, today, linked);
      if (recent !== undefined) return lastPart(folder, recent);
      return linked === undefined ? undefined : rediscover(stem);
    },
    /** Call it before the file is created. */
    async record(name: SessionFileName): Promise<void> {
      unlinked.delete(name.stem);
      await link(root, name);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      isClosed = true;
      await linking;
    },
  };
}

function linkPath(root: string, stem: string): string {
  const name = hash('sha256', stem);
  return join(root, name.slice(0, 2), name.slice(2, 34));
}

/** A link that is there is replaced as a whole: another process may read or replace it too. */
async function link(root: string, name: SessionFileName): Promise<void> {
  const path = linkPath(root, name.stem);
  const target = join('..', '..', formatName(name));
  try {
    symlinkSync(target, path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      return link(root, name);
    }
    if (systemCode(error) !== 'EEXIST') throw error;
    const temporary = `${path}.${randomUUID()}.tmp`;
    symlinkSync(target, temporary);
    renameSync(temporary, path);
  }
}

function readLink(root: string, stem: string): SessionFileName | undefined {
  const path = linkPath(root, stem);
  // A new conversation has none, and an error takes many times as long.
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
  try {
    const name = parseName(readlinkSync(path).split('/').at(-1) ?? '');
    return name?.stem === stem ? name : undefined;
  } catch (error) {
    return undefinedIfMissing(error);
  }
}

function newestOfLastDays(
  folder: string,
  stem: string,
  today: string,
  linked: SessionFileName | undefined,
): SessionFileName | undefined {
  for (const day of daysBack(today, PROBED_DAYS)) {
    if (linked !== undefined && day <= linked.day) break;
    const name = { stem, day, part: 1 };
    if (exists(join(folder, formatName(name)))) return name;
  }
  if (linked === undefined) return undefined;
  return exists(join(folder, formatName(linked))) ? linked : undefined;
}

function lastPart(folder: string, name: SessionFileName): SessionFileName {
  let last = name;
  for (;;) {
    const next = { ...last, part: last.part + 1 };
    if (!exists(join(folder, formatName(next)))) return last;
    last = next;
  }
}

async function newestOf(folder: string, stem: string): Promise<SessionFileName | undefined> {
  return (await sessionNames(folder, (name) => name.stem === stem)).at(-1);
}

/** Reads the names in the folder, once. */
async function newestByStem(folder: string): Promise<Map<string, SessionFileName>> {
  const newest = new Map<string, SessionFileName>();
  for (const name of await sessionNames(folder)) newest.set(name.stem, name);
  return newest;
}

/** Without the thread pool, which takes many times as long. */
export const exists = (path: string) => statSync(path, { throwIfNoEntry: false }) !== undefined;
