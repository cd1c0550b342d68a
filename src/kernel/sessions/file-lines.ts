// Lines of a file with their position, read in pieces: memory holds one line, other work runs
// between two pieces, and an endless line is reported, not collected.

import { hash } from 'node:crypto';
import { closeSync, openSync, read, readSync } from 'node:fs';
import { appendFile, open, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { undefinedIfMissing } from '../../lib/files/files.ts';
import { fieldsOf, parseJson } from '../../lib/json/json.ts';
import type { SessionKey } from '../message/ids.ts';
import type { TranscriptEntry } from '../message/transcript.ts';
import { withoutWhole } from './rules/earlier.ts';
import {
  decodeLine,
  encodeKey,
  MAX_STEM_BYTES,
  type SessionHeader,
  type SessionLine,
} from './rules/file.ts';

type FileLine = {
  /** Byte offset of the line's first byte. */
  readonly start: number;
  /** Without the newline; empty for a line above MAX_LINE_BYTES. */
  readonly bytes: Buffer;
  /** Length on disk, including the newline. */
  readonly length: number;
  /** False for the last line of a file that does not end in a newline. */
  readonly terminated: boolean;
  readonly oversized: boolean;
};

export const MAX_LINE_BYTES = 16_000_000;
/** The first piece is small, because most files are and many are read only for their header. */
const FIRST_CHUNK_BYTES = 8 * 1024;
const MAX_CHUNK_BYTES = 256 * 1024;
const NEWLINE = 10;
const readFrom = promisify(read);

/**
 * From the byte `from` on, at the start of a line. @throws the error of the file system, e.g.
 * ENOENT
 */
export async function* readLines(path: string, from = 0): AsyncGenerator<FileLine, void, void> {
  const file = openSync(path, 'r');
  try {
    yield* linesOf(file, from);
  } finally {
    closeSync(file);
  }
}

/** The same with the decoded lines. */
export async function* readDecoded(
  path: string,
  from = 0,
): AsyncGenerator<FileLine & SessionLine, void, void> {
  for await (const line of readLines(path, from)) {
    yield { ...line, ...decodeLine(line.bytes.toString('utf8')) };
  }
}

async function* linesOf(file: number, begin: number): AsyncGenerator<FileLine, void, void> {
  let chunk = Buffer.allocUnsafe(FIRST_CHUNK_BYTES);
  const line = createLineCollector(begin);
  let position = begin;
  for (;;) {
    // The first piece, mostly of a file that was just written, without the thread pool, which takes many times as long.
    const bytesRead =
      position === begin
        ? readSync(file, chunk, 0, chunk.length, position)
        : (await readFrom(file, chunk, 0, chunk.length, position)).bytesRead;
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
    if (bytesRead < chunk.length) break;
    if (chunk.length < MAX_CHUNK_BYTES) {
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

// Reads one session file completely: its header, what it carries over, its own entries, and what is
// damaged. The second part repairs it.

export type FileScan = {
  readonly header: SessionHeader | undefined;
  readonly carried: readonly TranscriptEntry[];
  readonly own: readonly TranscriptEntry[];
  /** Complete lines that cannot be read. */
  readonly damaged: readonly FileLine[];
  /** What follows the last newline; `isWhole`: only the newline is missing. */
  readonly torn: { readonly line: FileLine; readonly isWhole: boolean } | undefined;
  /** Bytes up to the last newline. */
  readonly size: number;
  /** Bytes of the header and of the carried entries. */
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
  for await (const line of readDecoded(path)) {
    const isDamaged = line.kind === 'damaged';
    if (!line.terminated) torn = { line, isWhole: !isDamaged };
    else size = line.start + line.length;
    if (line.kind === 'header') header ??= line.header;
    if (line.kind === 'entry') (line.carried ? carried : own).push(withoutWhole(line.entry));
    if (isDamaged && line.terminated) damaged.push(line);
    if (line.kind === 'header' || (line.kind === 'entry' && line.carried)) {
      openingBytes += line.length;
    }
  }
  return { header, carried, own, damaged, torn, size, openingBytes };
}

/** The same of whole lines that are not in a file. */
export function scanText(text: string): FileScan {
  const carried: TranscriptEntry[] = [];
  const own: TranscriptEntry[] = [];
  let header: SessionHeader | undefined;
  let openingBytes = 0;
  for (const line of text.split('\n')) {
    const decoded = decodeLine(line);
    if (decoded.kind === 'header') header ??= decoded.header;
    if (decoded.kind === 'entry') {
      (decoded.carried ? carried : own).push(withoutWhole(decoded.entry));
    }
    if (decoded.kind === 'header' || (decoded.kind === 'entry' && decoded.carried)) {
      openingBytes += Buffer.byteLength(line) + 1;
    }
  }
  const size = Buffer.byteLength(text);
  return { header, carried, own, damaged: [], torn: undefined, size, openingBytes };
}

/** Whether the program ended while it opened the file: then it has no entries of its own. */
export function isUnbegun(scan: FileScan): boolean {
  if (scan.own.length > 0 || scan.damaged.length > 0) return false;
  return scan.header === undefined || scan.carried.length < scan.header.carried;
}

// The few file system errors that are answers, not failures.

/** For a person; the error of a file system names the file. */
export const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

// The part of a file name that represents the session. A key too long for a file name is shortened
// and distinguished by a hash; `~` marks that, and never occurs in a complete one.

const HASH_CHARS = 32;

/** Stems of all conversations of a chat begin so, and possibly those of others. */
export const stemStart = (chat: SessionKey): string =>
  encodeKey(chat).slice(0, MAX_STEM_BYTES - HASH_CHARS - 1);

export function stemOf(key: SessionKey): string {
  const encoded = encodeKey(key);
  if (encoded.length <= MAX_STEM_BYTES) return encoded;
  const short = hash('sha256', key).slice(0, HASH_CHARS);
  return `${encoded.slice(0, MAX_STEM_BYTES - HASH_CHARS - 1)}~${short}`;
}

// Repairs a session file after a crash or a bad disk, so that a damaged line never blocks a chat.
// Unreadable lines are copied to `<file>.damaged`; only bytes after the last newline are cut off.

type Repair = {
  /** Size of the file after the repair, bytes. */
  readonly size: number;
  /** Lines copied for the first time. */
  readonly setAside: number;
};

export const DAMAGED_SUFFIX = '.damaged';

export async function repairFile(path: string, scan: FileScan): Promise<Repair> {
  const { torn } = scan;
  const mustEndLine = torn !== undefined && (torn.isWhole || torn.line.oversized);
  const lost = torn === undefined || mustEndLine ? scan.damaged : [...scan.damaged, torn.line];
  const setAside = lost.length === 0 ? 0 : await noteDamage(path, lost);
  if (torn === undefined) return { size: scan.size, setAside };
  const end = torn.line.start + torn.line.length;
  if (mustEndLine) await appendSynced(path, '\n');
  else await truncateSynced(path, scan.size);
  return { size: mustEndLine ? end + 1 : scan.size, setAside };
}

/** Whether the last line has no end; of a file that a process is writing for a moment. */
export async function isCutOff(path: string): Promise<boolean> {
  await using file = await open(path, 'r');
  const { size } = await file.stat();
  if (size === 0) return false;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== NEWLINE;
}

async function noteDamage(path: string, lines: readonly FileLine[]): Promise<number> {
  const notePath = `${path}${DAMAGED_SUFFIX}`;
  const noted = (await readFile(notePath, 'utf8').catch(undefinedIfMissing)) ?? '';
  const known = new Set(noted.split('\n'));
  const fresh = lines.map(describeLine).filter((note) => !known.has(note));
  if (fresh.length === 0) return 0;
  await appendSynced(notePath, `${fresh.join('\n')}\n`);
  return fresh.length;
}

/** The text of a copied line. */
export function textOfDamage(note: string): string {
  const { text, base64 } = fieldsOf(parseJson(note)) ?? {};
  if (typeof text === 'string') return text;
  return typeof base64 === 'string' ? Buffer.from(base64, 'base64').toString('utf8') : note;
}

function appendSynced(path: string, text: string): Promise<void> {
  return appendFile(path, text, { mode: 0o600, flush: true });
}

async function truncateSynced(path: string, size: number): Promise<void> {
  await using file = await open(path, 'r+');
  await file.truncate(size);
  await file.datasync();
}

function describeLine(line: FileLine): string {
  const text = line.bytes.toString('utf8');
  const isText = Buffer.from(text, 'utf8').equals(line.bytes);
  return JSON.stringify({
    _type: line.terminated ? 'damaged_line' : 'torn_line',
    offset: line.start,
    bytes: line.length,
    ...(isText ? { text } : { base64: line.bytes.toString('base64') }),
  });
}
