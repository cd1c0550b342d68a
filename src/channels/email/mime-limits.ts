// Measures a raw mail before any parser sees it (case E19): header size, number and depth of parts,
// in one pass over line starts, a window at a time.

import { bytesOf, type RawMail, sizeOf } from './mail-spool.ts';

export const MAX_MAIL_BYTES = 25 * 1024 * 1024;
const MAX_PARTS = 200;
export const MAX_DEPTH = 10;
export const MAX_HEADER_BYTES = 256 * 1024;
const MAX_HEADER_LINES = 500;

const LF = 0x0a;
const MAX_PART_HEADER_BYTES = 16 * 1024;
const MAX_BOUNDARY_LINE_BYTES = 256;
const WINDOW_BYTES = 256 * 1024;
/** What is read of a part that begins at the very end of a window. */
const LOOK_AHEAD_BYTES = MAX_BOUNDARY_LINE_BYTES + MAX_PART_HEADER_BYTES + 1;

export type MimeShape = {
  readonly parts: number;
  readonly depth: number;
  /** Lower case, the whole mail's first. */
  readonly contentTypes: readonly string[];
  readonly calendarMethod: string | undefined;
};

/** The header block, cut at the limit; the body begins at `bodyAt`. */
export function splitHeader(raw: RawMail): { readonly block: string; readonly bodyAt: number } {
  const head = bytesOf(raw, 0, MAX_HEADER_BYTES);
  for (let at = 0; at < head.length; ) {
    const end = head.indexOf(LF, at);
    if (end === -1) break;
    const isEmpty = end === at || (end === at + 1 && head[at] === 0x0d);
    if (isEmpty) return { block: head.toString('utf8', 0, at), bodyAt: end + 1 };
    at = end + 1;
  }
  return { block: head.toString('utf8'), bodyAt: sizeOf(raw) };
}

/** `isHeaderSound`: its signatures can be checked all the same. */
export type BrokenLimit = { readonly gate: string; readonly isHeaderSound: boolean };

const broken = (gate: string, isHeaderSound = false): BrokenLimit => ({ gate, isHeaderSound });

/** The limit a mail breaks, or its shape. */
export function measureMime(raw: RawMail): MimeShape | BrokenLimit {
  if (sizeOf(raw) > MAX_MAIL_BYTES) return broken('mail too large');
  const { block, bodyAt } = splitHeader(raw);
  if (Buffer.byteLength(block) >= MAX_HEADER_BYTES) return broken('mail header too large');
  if (block.split('\n').length > MAX_HEADER_LINES) return broken('too many header lines');
  return new ShapeReader(block).read(raw, bodyAt);
}

class ShapeReader {
  readonly #boundaries = new Set<string>();
  readonly #open: string[] = [];
  readonly #types: string[] = [];
  #calendarMethod: string | undefined;
  #parts = 1;
  #depth = 1;

  constructor(block: string) {
    this.#readPartHeader(block);
  }

  read(raw: RawMail, bodyAt: number): MimeShape | BrokenLimit {
    const into = Buffer.allocUnsafe(Math.min(sizeOf(raw), 1 + WINDOW_BYTES + LOOK_AHEAD_BYTES));
    for (let from = bodyAt; from < sizeOf(raw); from += WINDOW_BYTES) {
      // One byte before, which ends the line before.
      const window = bytesOf(raw, from - 1, from + WINDOW_BYTES + LOOK_AHEAD_BYTES, into);
      for (let at = nextDelimiter(window, 1); isWithin(at); at = nextDelimiter(window, at + 2)) {
        this.#enter(window, at);
        if (this.#parts > MAX_PARTS) return broken('too many parts', true);
        if (this.#depth > MAX_DEPTH) return broken('parts nested too deep', true);
      }
    }
    return {
      parts: this.#parts,
      depth: this.#depth,
      contentTypes: this.#types,
      calendarMethod: this.#calendarMethod,
    };
  }

  #enter(raw: Buffer, at: number): void {
    const end = raw.indexOf(LF, at);
    const lineEnd = end === -1 ? raw.length : end;
    if (lineEnd - at > MAX_BOUNDARY_LINE_BYTES) return;
    const name = raw.toString('latin1', at + 2, lineEnd).trimEnd();
    if (!this.#boundaries.has(name)) return;
    this.#parts += 1;
    const level = this.#open.indexOf(name);
    if (level === -1) this.#open.push(name);
    else this.#open.length = level + 1;
    this.#depth = Math.max(this.#depth, this.#open.length + 1);
    const header = raw.toString('latin1', lineEnd + 1, lineEnd + 1 + MAX_PART_HEADER_BYTES);
    this.#readPartHeader(header.split(/\r?\n\r?\n/, 1)[0] ?? '');
  }

  #readPartHeader(header: string): void {
    const unfolded = header.replace(/\r?\n[ \t]+/g, ' ');
    const line = /^content-type[ \t]*:(.*)$/im.exec(unfolded)?.[1] ?? 'text/plain';
    this.#types.push((line.split(';')[0] ?? '').trim().toLowerCase());
    const boundary = /boundary\s*=\s*(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(line);
    const name = boundary?.[1] ?? boundary?.[2];
    if (name !== undefined) this.#boundaries.add(name.trimEnd());
    const method = /^\s*text\/calendar.*\bmethod\s*=\s*"?([a-z]+)/i.exec(line)?.[1];
    this.#calendarMethod ??= method?.toLowerCase();
  }
}

/** Later ones are found in the next window again. */
const isWithin = (at: number) => at !== -1 && at <= WINDOW_BYTES;

/** The next line that begins with `--`. */
function nextDelimiter(raw: Buffer, from: number): number {
  if (raw[from] === 0x2d && raw[from + 1] === 0x2d && raw[from - 1] === LF) return from;
  const at = raw.indexOf('\n--', from, 'latin1');
  return at === -1 ? -1 : at + 1;
}
