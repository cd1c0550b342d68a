// Writing session files: a new one with what it opens with, and entries at the end of an open one.
// After a failed write the file ends where it ended before.

import { writeSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionKey } from '../core/ids.ts';
import { encodeEntry, encodeHeader } from '../core/session/file.ts';
import { formatName, type SessionFileName } from '../core/session/name.ts';
import type { TranscriptEntry } from '../core/transcript.ts';
import { hasErrorCode } from './file-errors.ts';
import type { OpenFiles } from './open-files.ts';
import type { FileEnd } from './tail.ts';

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
