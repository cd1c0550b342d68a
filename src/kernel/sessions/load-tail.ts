// Brings the tail of a session into memory: finds the newest file, mends it where needed and reads
// it. The cost is that of one file of bounded size, whatever the age of the session.

import { constants, writeSync } from 'node:fs';
import { type FileHandle, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../lib/logger.ts';
import type { SessionKey, TurnId } from '../message/ids.ts';
import type { TranscriptEntry } from '../message/transcript.ts';
import {
  type FileScan,
  hasErrorCode,
  isUnbegun,
  orUndefined,
  repairFile,
  scanFile,
} from './file-lines.ts';
import type { NewestIndex } from './index-file.ts';
import { changesWindow, type Growth, tokensOfBytes, turnOf, windowOf } from './rules/carry.ts';
import {
  encodeEntry,
  encodeHeader,
  formatName,
  parseName,
  type SessionFileName,
} from './rules/file.ts';

export type TailSource = {
  readonly folder: string;
  readonly index: NewestIndex;
  readonly log: Logger;
};

const NOTHING = { end: undefined, carried: [], own: [], turnBefore: undefined };

export async function loadTail(
  source: TailSource,
  stem: string,
  today: string,
): Promise<SessionTail> {
  let name = await source.index.find(stem, today);
  while (name !== undefined) {
    const path = join(source.folder, formatName(name));
    const scan = await scanFile(path);
    const { size, setAside } = await repairFile(path, scan);
    if (setAside > 0) source.log.warn('damaged lines set aside', { file: path, lines: setAside });
    if (!isUnbegun(scan)) return toTail(source.folder, name, scan, size);
    await rm(path);
    name = await source.index.rediscover(stem);
  }
  return new SessionTail(NOTHING);
}

async function toTail(
  folder: string,
  name: SessionFileName,
  scan: FileScan,
  size: number,
): Promise<SessionTail> {
  const grown = Math.max(0, size - scan.openingBytes);
  const growth = { bytes: grown, tokens: tokensOfBytes(grown) };
  const continues = scan.header?.continues;
  const isYoung = new Set(scan.own.map(turnOf)).size < 2;
  return new SessionTail({
    end: { name, size, growth },
    carried: scan.carried,
    own: scan.own,
    turnBefore:
      isYoung && continues !== undefined ? await lastTurnOf(folder, continues) : undefined,
  });
}

/** A retry after a crash may concern the turn that ended the file before. */
async function lastTurnOf(folder: string, fileName: string): Promise<TurnRecord | undefined> {
  if (parseName(fileName) === undefined) return undefined;
  const scan = await scanFile(join(folder, fileName)).catch(orUndefined('ENOENT'));
  const own: readonly TranscriptEntry[] = scan?.own ?? [];
  const id = own.map(turnOf).findLast((turn) => turn !== undefined);
  if (id === undefined) return undefined;
  return { id, entries: own.filter((entry) => turnOf(entry) === id) };
}

// The end of a session as it is kept in memory: what the model may see and which turns the newest
// file holds. Filled from disk once, then kept up to date by every append.

/** The place in the newest file where the next entry goes. */
export type FileEnd = {
  readonly name: SessionFileName;
  /** Bytes up to the last whole line. */
  readonly size: number;
  readonly growth: Growth;
};

export type TurnRecord = { readonly id: TurnId; readonly entries: readonly TranscriptEntry[] };

export type TailContent = {
  /** Undefined while the session has no file. */
  readonly end: FileEnd | undefined;
  /** What the file opens with. */
  readonly carried: readonly TranscriptEntry[];
  /** What was written into the file first. */
  readonly own: readonly TranscriptEntry[];
  /** Last turn of the file before: it may be retried after a crash. */
  readonly turnBefore: TurnRecord | undefined;
};

export class SessionTail {
  #end: FileEnd | undefined;
  #window: TranscriptEntry[];
  readonly #turns = new Map<TurnId, TranscriptEntry[]>();
  readonly #turnBefore: TurnRecord | undefined;

  constructor(content: TailContent) {
    this.#end = content.end;
    this.#window = [...windowOf([...content.carried, ...content.own])];
    this.#turnBefore = content.turnBefore;
    this.#noteTurns(content.own);
  }

  get end(): FileEnd | undefined {
    return this.#end;
  }

  get window(): readonly TranscriptEntry[] {
    return this.#window;
  }

  /** The turn's entries in order; undefined for one that is not known here. */
  turn(id: TurnId): readonly TranscriptEntry[] | undefined {
    const before = this.#turnBefore?.id === id ? this.#turnBefore.entries : undefined;
    return this.#turns.get(id) ?? before;
  }

  get lastTurn(): TurnRecord | undefined {
    const last = [...this.#turns].at(-1);
    return last === undefined ? this.#turnBefore : { id: last[0], entries: last[1] };
  }

  /** The entries were written at the end, `bytes` of them. */
  appended(entries: readonly TranscriptEntry[], bytes: number): void {
    if (this.#end === undefined) return;
    const grown = this.#end.growth.bytes + bytes;
    this.#end = {
      name: this.#end.name,
      size: this.#end.size + bytes,
      growth: { bytes: grown, tokens: tokensOfBytes(grown) },
    };
    this.#window.push(...entries);
    if (entries.some(changesWindow)) this.#window = [...windowOf(this.#window)];
    this.#noteTurns(entries);
  }

  #noteTurns(entries: readonly TranscriptEntry[]): void {
    for (const entry of entries) {
      const id = turnOf(entry);
      if (id === undefined) continue;
      const known = this.#turns.get(id);
      if (known === undefined) this.#turns.set(id, [entry]);
      else known.push(entry);
    }
  }
}

// Writing session files: a new one with what it opens with, and entries at the end of an open one.
// After a failed write the file ends where it ended before.

export type Opening = {
  readonly key: SessionKey;
  readonly createdAt: number;
  readonly continues: SessionFileName | undefined;
  readonly carried: readonly TranscriptEntry[];
};

/** Creates the file under the wanted name or, where that exists, as a later part of the day. */
export async function beginFile(
  folder: string,
  wanted: SessionFileName,
  opening: Opening,
): Promise<FileEnd> {
  const { key, createdAt, continues, carried } = opening;
  const header = encodeHeader({
    key,
    createdAt,
    ...(continues === undefined ? {} : { continues: formatName(continues) }),
    carried: carried.length,
  });
  const data = toBytes([header, ...carried.map((entry) => encodeEntry(entry, true))]);
  for (let name = wanted; ; name = { ...name, part: name.part + 1 }) {
    const isNew = await create(join(folder, formatName(name)), data);
    if (isNew) return { name, size: data.length, growth: { bytes: 0, tokens: 0 } };
  }
}

async function create(path: string, data: Uint8Array): Promise<boolean> {
  try {
    await writeFile(path, data, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (hasErrorCode(error, 'EEXIST')) return false;
    await rm(path, { force: true });
    throw error;
  }
}

/** Returns the number of bytes written. With `durable` they are on the disk. */
export async function appendEntries(
  files: OpenFiles,
  path: string,
  sizeBefore: number,
  entries: readonly TranscriptEntry[],
  durable: boolean,
): Promise<number> {
  const data = toBytes(entries.map((entry) => encodeEntry(entry)));
  await files.use(path, async (file) => {
    try {
      writeAll(file.fd, data);
    } catch (error) {
      // Where this fails too, the torn line is mended when the session is loaded again.
      await file.truncate(sizeBefore).catch(() => undefined);
      throw error;
    }
    if (durable) await file.datasync();
  });
  return data.length;
}

/** Into the kernel's memory: the thread pool would take ten times as long. Waiting for the disk is its part. */
function writeAll(fd: number, data: Uint8Array): void {
  for (let written = 0; written < data.length; ) written += writeSync(fd, data, written);
}

function toBytes(lines: readonly string[]): Buffer {
  return Buffer.from(lines.map((line) => `${line}\n`).join(''), 'utf8');
}

// Keeps the files that are being appended to open, up to a number, so that an append costs no open
// and close. A file in use is never closed; the one unused longest goes first.

const APPEND = constants.O_WRONLY | constants.O_APPEND;

type Slot = { readonly file: Promise<FileHandle>; users: number };

type OpenFiles = ReturnType<typeof createOpenFiles>;

export function createOpenFiles(maxFiles: number) {
  const slots = new Map<string, Slot>();

  async function drop(path: string, slot: Slot) {
    if (slots.get(path) === slot) slots.delete(path);
    const file = await slot.file.catch(() => undefined);
    await file?.close();
  }

  async function closeUnused() {
    const spare = [...slots].filter(([, slot]) => slot.users === 0);
    const surplus = spare.slice(0, Math.max(0, slots.size - maxFiles));
    await Promise.all(surplus.map(([path, slot]) => drop(path, slot)));
  }

  return {
    /** Runs the task with the file open for appending. @throws ENOENT: it is never created here */
    async use<T>(path: string, task: (file: FileHandle) => Promise<T>): Promise<T> {
      const slot = slots.get(path) ?? { file: open(path, APPEND), users: 0 };
      slot.users += 1;
      slots.delete(path);
      slots.set(path, slot);
      try {
        return await task(await slot.file);
      } catch (error) {
        if (slots.get(path) === slot) slots.delete(path);
        throw error;
      } finally {
        slot.users -= 1;
        if (slot.users === 0 && slots.get(path) !== slot) await drop(path, slot);
        if (slots.size > maxFiles) await closeUnused();
      }
    },
    /** Closes the file if it is open, e.g. before it is repaired. */
    async close(path: string): Promise<void> {
      const slot = slots.get(path);
      if (slot !== undefined) await drop(path, slot);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all([...slots].map(([path, slot]) => drop(path, slot)));
    },
  };
}
