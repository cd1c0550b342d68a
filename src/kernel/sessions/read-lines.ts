// Lines of a file with their place in it, read in pieces: memory holds one line, the event loop
// gets its turn between two pieces, and a line without end is reported, not collected.

import { type FileHandle, open } from 'node:fs/promises';
import type { TranscriptEntry } from '../message/transcript.ts';
import { withoutWhole } from './rules/earlier.ts';
import { decodeLine, type SessionHeader } from './rules/file.ts';

export type FileLine = {
  /** Byte offset of the line's first byte. */
  readonly start: number;
  /** Without the newline; empty for a line above MAX_LINE_BYTES. */
  readonly bytes: Buffer;
  /** Length on disk, the newline included. */
  readonly length: number;
  /** False for the last line of a file that does not end in a newline. */
  readonly terminated: boolean;
  readonly oversized: boolean;
};

export const MAX_LINE_BYTES = 16_000_000;
/** The first piece is small, because most files are and many are read for their header alone. */
const FIRST_CHUNK_BYTES = 8 * 1024;
const MAX_CHUNK_BYTES = 256 * 1024;
const NEWLINE = 10;

/** From the byte `from` on, where a line begins. @throws the error of the file system, e.g. ENOENT */
export async function* readLines(path: string, from = 0): AsyncGenerator<FileLine, void, void> {
  const file = await open(path, 'r');
  try {
    yield* linesOf(file, from);
  } finally {
    await file.close();
  }
}

async function* linesOf(file: FileHandle, begin: number): AsyncGenerator<FileLine, void, void> {
  let chunk = Buffer.allocUnsafe(FIRST_CHUNK_BYTES);
  const line = createLineCollector(begin);
  let position = begin;
  for (;;) {
    const { bytesRead } = await file.read(chunk, 0, chunk.length, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    let from = 0;
    for (;;) {
      const newline = chunk.subarray(0, bytesRead).indexOf(NEWLINE, from);
      if (newline < 0) break;
      line.add(chunk.subarray(from, newline));
      yield line.finish(true);
      from = newline + 1;
    }
    line.add(chunk.subarray(from, bytesRead));
    if (bytesRead === chunk.length && chunk.length < MAX_CHUNK_BYTES) {
      chunk = Buffer.allocUnsafe(MAX_CHUNK_BYTES);
    }
  }
  if (line.length > 0) yield line.finish(false);
}

function createLineCollector(begin: number) {
  let start = begin;
  let length = 0;
  let pieces: Buffer[] = [];
  return {
    get length() {
      return length;
    },
    add(piece: Buffer) {
      length += piece.length;
      if (length > MAX_LINE_BYTES) pieces = [];
      else if (piece.length > 0) pieces.push(Buffer.from(piece));
    },
    finish(terminated: boolean): FileLine {
      const oversized = length > MAX_LINE_BYTES;
      const bytes = oversized ? Buffer.alloc(0) : Buffer.concat(pieces);
      const onDisk = length + (terminated ? 1 : 0);
      const line = { start, bytes, length: onDisk, terminated, oversized };
      start += onDisk;
      length = 0;
      pieces = [];
      return line;
    },
  };
}

// Reads one session file whole: its header, what it carries over, what it holds itself, and what of
// it is damaged. Mending is left to repair.ts.

export type FileScan = {
  readonly header: SessionHeader | undefined;
  readonly carried: readonly TranscriptEntry[];
  readonly own: readonly TranscriptEntry[];
  /** Whole lines that cannot be read. */
  readonly damaged: readonly FileLine[];
  /** What stands behind the last newline; `isWhole`: only the newline is missing. */
  readonly torn: { readonly line: FileLine; readonly isWhole: boolean } | undefined;
  /** Bytes up to the last newline. */
  readonly size: number;
  /** Bytes of the header and of what is carried. */
  readonly openingBytes: number;
};

/** @throws the error of the file system, e.g. ENOENT */
export async function scanFile(path: string): Promise<FileScan> {
  const carried: TranscriptEntry[] = [];
  const own: TranscriptEntry[] = [];
  const damaged: FileLine[] = [];
  let header: SessionHeader | undefined;
  let torn: FileScan['torn'];
  let size = 0;
  let openingBytes = 0;
  for await (const line of readLines(path)) {
    const decoded = decodeLine(line.bytes.toString('utf8'));
    const isDamaged = decoded.kind === 'damaged';
    if (!line.terminated) torn = { line, isWhole: !isDamaged };
    else size = line.start + line.length;
    if (decoded.kind === 'header') header ??= decoded.header;
    if (decoded.kind === 'entry') {
      (decoded.carried ? carried : own).push(withoutWhole(decoded.entry));
    }
    if (isDamaged && line.terminated) damaged.push(line);
    if (decoded.kind === 'header' || (decoded.kind === 'entry' && decoded.carried)) {
      openingBytes += line.length;
    }
  }
  return { header, carried, own, damaged, torn, size, openingBytes };
}

/** Whether the program ended while it opened the file: then it holds nothing of its own. */
export function isUnbegun(scan: FileScan): boolean {
  if (scan.own.length > 0 || scan.damaged.length > 0) return false;
  return scan.header === undefined || scan.carried.length < scan.header.carried;
}
