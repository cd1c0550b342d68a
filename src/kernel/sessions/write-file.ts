// Writing session files: a new one with what it opens with, and entries at the end of an open one.
// After a failed write the file ends where it ended before.

import { constants, writeSync } from 'node:fs';
import { type FileHandle, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionKey } from '../message/ids.ts';
import type { TranscriptEntry } from '../message/transcript.ts';
import { hasErrorCode } from './file-lines.ts';
import type { FileEnd } from './load-tail.ts';
import { encodeEntry, encodeHeader, formatName, type SessionFileName } from './rules/file.ts';

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

export interface OpenFiles extends AsyncDisposable {
  /** Runs the task with the file open for appending. @throws ENOENT: it is never created here */
  use<T>(path: string, task: (file: FileHandle) => Promise<T>): Promise<T>;
  /** Closes the file if it is open, e.g. before it is repaired. */
  close(path: string): Promise<void>;
}

const APPEND = constants.O_WRONLY | constants.O_APPEND;

type Slot = { readonly file: Promise<FileHandle>; users: number };

export function createOpenFiles(maxFiles: number): OpenFiles {
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
    async use(path, task) {
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
    async close(path) {
      const slot = slots.get(path);
      if (slot !== undefined) await drop(path, slot);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...slots].map(([path, slot]) => drop(path, slot)));
    },
  };
}
