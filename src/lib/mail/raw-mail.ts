// A raw mail, read piece by piece from several threads: a small one in memory, a large one in an
// open file (its descriptor is valid in every thread of a process), and its form before a parser
// sees it.

import { readSync } from 'node:fs';
import { getDefaultHighWaterMark } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** The code that opened the file closes it, after all readers have ended. */
export type RawMail = Uint8Array | { readonly fd: number; readonly bytes: number };

/** What a stream accepts before it asks to wait. */
const PIECE_BYTES = getDefaultHighWaterMark(false);

export const sizeOf = (raw: RawMail): number =>
  raw instanceof Uint8Array ? raw.byteLength : raw.bytes;

/** The bytes from `start` to `end` or the end of the mail; for a file, copied into `into`. */
export function bytesOf(raw: RawMail, start: number, end: number, into?: Buffer): Buffer {
  const length = Math.max(0, Math.min(end, sizeOf(raw)) - start);
  if (raw instanceof Uint8Array) {
    return Buffer.from(raw.buffer, raw.byteOffset + Math.min(start, raw.byteLength), length);
  }
  const found = into ?? Buffer.allocUnsafe(length);
  let read = 0;
  while (read < length) {
    const count = readSync(raw.fd, found, read, length - read, start + read);
    if (count === 0) break;
    read += count;
  }
  return found.subarray(0, read);
}

/** Pieces that may be kept. */
export const piecesOf = (raw: RawMail): Generator<Buffer, void, void> => pieces(raw);

/** The same in a reused buffer: what is kept of a piece must be copied. */
export const passingPieces = (raw: RawMail): Generator<Buffer, void, void> =>
  pieces(raw, Buffer.allocUnsafe(Math.min(sizeOf(raw), PIECE_BYTES)));

function* pieces(raw: RawMail, into?: Buffer): Generator<Buffer, void, void> {
  const size = sizeOf(raw);
  const sweeper = createSweeper();
  for (let at = 0; at < size; at += PIECE_BYTES) {
    yield bytesOf(raw, at, at + PIECE_BYTES, into);
    sweeper.passed(PIECE_BYTES);
  }
}

// Buffers lie outside the heap, and V8 collects unused ones only after 32 MB: as much as a large
// mail leaves behind in each thread. So they are collected while the mail passes.

type Collect = (options: { readonly type: 'minor' }) => void;

const CLEAR_EVERY_BYTES = 2 * 1024 * 1024;

/** Runs a minor collection every few megabytes; each takes some milliseconds. */
export function createSweeper(): { passed(bytes: number): void } {
  let unswept = 0;
  let collect: Collect | undefined;
  return {
    passed(bytes) {
      unswept += bytes;
      if (unswept < CLEAR_EVERY_BYTES) return;
      unswept = 0;
      collect ??= collector();
      collect({ type: 'minor' });
    },
  };
}

/** The collector is a function of contexts created after the flag is set. */
function collector(): Collect {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc');
}

// The form of a raw mail before a parser sees it. Measures header size, number and depth of parts
// in one pass (case E19), and repairs a multipart without its delimiter and a mail that is signed
// in one piece.

export const MAX_MAIL_BYTES = 25 * 1024 * 1024;
const MAX_PARTS = 200;
export const MAX_DEPTH = 10;
export const MAX_HEADER_BYTES = 256 * 1024;
const MAX_HEADER_LINES = 500;

const LF = 0x0a;
const MAX_PART_HEADER_BYTES = 16 * 1024;
const MAX_BOUNDARY_LINE_BYTES = 256;
const WINDOW_BYTES = 256 * 1024;
/** Bytes read of a part that begins at the very end of a window. */
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

/** `isHeaderSound`: the signatures can still be checked. */
type BrokenLimit = { readonly gate: string; readonly isHeaderSound: boolean };

const broken = (gate: string, isHeaderSound = false): BrokenLimit => ({ gate, isHeaderSound });

/** The limit a mail breaks, or its shape. */
function measureMime(raw: RawMail): MimeShape | BrokenLimit {
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
      // Starts one byte earlier, at the end of the previous line.
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

/** Later ones are found again in the next window. */
const isWithin = (at: number) => at !== -1 && at <= WINDOW_BYTES;

/** The next line that begins with `--`. */
function nextDelimiter(raw: Buffer, from: number): number {
  if (raw[from] === 0x2d && raw[from + 1] === 0x2d && raw[from - 1] === LF) return from;
  const at = raw.indexOf('\n--', from, 'latin1');
  return at === -1 ? -1 : at + 1;
}

// Converts two kinds of mail into a form that a MIME parser reads: a multipart whose delimiter is
// missing or never used, and an S/MIME mail signed in one piece (RFC 8551 section 3.5.2). The
// signature of the latter is not checked; only its content is extracted.

const SIGNED_TYPE = /^application\/(x-)?pkcs7-mime$/;
/** Read as a whole. */
const MAX_SIGNED_BYTES = 8 * 1024 * 1024;
/** For a multipart without parts: more than a text shows. */
const MAX_PLAIN_BYTES = 1024 * 1024;
/** The first line of a part, with its header directly below. */
const DELIMITER = /(?:^|\n)--([^\s"]{1,70})[ \t]*\r?\ncontent-/i;
const MAX_SEARCHED_BYTES = 64 * 1024;

type Mended = { readonly raw: RawMail; readonly shape: MimeShape };

/** The mail as it is to be parsed, or the limit it breaks. */
export function mendedMail(raw: RawMail): Mended | BrokenLimit {
  const shape = measureMime(raw);
  if ('gate' in shape) return shape;
  const [type = ''] = shape.contentTypes;
  if (SIGNED_TYPE.test(type)) return remeasured(signedContent(raw), [], { raw, shape });
  if (!type.startsWith('multipart/') || shape.parts > 1) return { raw, shape };
  return remeasured(withoutParts(raw), shape.contentTypes, { raw, shape });
}

function remeasured(
  mended: Buffer | undefined,
  types: readonly string[],
  unmended: Mended,
): Mended | BrokenLimit {
  if (mended === undefined) return unmended;
  const shape = measureMime(mended);
  if ('gate' in shape) return shape;
  return { raw: mended, shape: { ...shape, contentTypes: [...types, ...shape.contentTypes] } };
}

/** Uses the undeclared delimiter that occurs in the body, or treats the body as one text. */
function withoutParts(raw: RawMail): Buffer {
  const { bodyAt } = splitHeader(raw);
  const start = `\n${bytesOf(raw, bodyAt, bodyAt + MAX_SEARCHED_BYTES).toString('latin1')}`;
  const delimiter = DELIMITER.exec(start)?.[1];
  const fields = fieldsOf(bytesOf(raw, 0, bodyAt));
  const charset = fields.flatMap(
    (field) => /charset\s*=\s*"?([\w.:-]+)/i.exec(field)?.[1] ?? [],
  )[0];
  const type =
    delimiter === undefined
      ? `text/plain; charset=${charset ?? 'utf-8'}`
      : `multipart/mixed; boundary="${delimiter}"`;
  const kept = fields.filter((field) => !/^content-type[ \t]*:/i.test(field));
  const end = delimiter === undefined ? bodyAt + MAX_PLAIN_BYTES : bodyAt + MAX_SIGNED_BYTES;
  return joined([...kept, `Content-Type: ${type}`], bytesOf(raw, bodyAt, end));
}

/** Undefined if it is encrypted or malformed. */
function signedContent(raw: RawMail): Buffer | undefined {
  if (sizeOf(raw) > MAX_SIGNED_BYTES) return undefined;
  const { bodyAt } = splitHeader(raw);
  const fields = fieldsOf(bytesOf(raw, 0, bodyAt));
  const body = bytesOf(raw, bodyAt, sizeOf(raw));
  const isBase64 = fields.some((field) =>
    /^content-transfer-encoding[ \t]*:\s*base64/i.test(field),
  );
  const content = eContentOf(isBase64 ? Buffer.from(body.toString('latin1'), 'base64') : body);
  if (content === undefined) return undefined;
  const inner = splitHeader(content);
  const isContent = (field: string) => /^content-/i.test(field);
  return joined(
    [
      ...fields.filter((field) => !isContent(field)),
      ...fieldsOf(content.subarray(0, inner.bodyAt)).filter(isContent),
    ],
    content.subarray(inner.bodyAt),
  );
}

/** Header fields, each with its folded lines. */
const fieldsOf = (header: Buffer): readonly string[] =>
  header.toString('latin1').match(/^[^\s][^\n]*(?:\n[ \t][^\n]*)*/gm) ?? [];

const joined = (fields: readonly string[], body: Buffer) =>
  Buffer.concat([
    Buffer.from(`${fields.map((field) => `${field.trimEnd()}\r\n`).join('')}\r\n`, 'latin1'),
    body,
  ]);

/** A BER value (X.690): its content, and where the next one begins. */
type Element = {
  readonly tag: number;
  readonly from: number;
  readonly to: number;
  readonly next: number;
};

const SEQUENCE = 0x30;
const EXPLICIT = 0xa0;
const OBJECT_ID = 0x06;
const OCTETS = 0x04;
const OCTETS_IN_PIECES = 0x24;
const SIGNED_DATA = '2a864886f70d010702';
const MAX_BER_DEPTH = 16;
const INDEFINITE = 0x80;

/** The content of a SignedData (RFC 5652 section 5). */
function eContentOf(ber: Buffer): Buffer | undefined {
  const [type, wrapped] = childrenOf(ber, elementAt(ber, 0), SEQUENCE);
  const isSigned =
    type?.tag === OBJECT_ID && ber.toString('hex', type.from, type.to) === SIGNED_DATA;
  if (!isSigned) return undefined;
  const [data] = childrenOf(ber, wrapped, EXPLICIT);
  const carried = childrenOf(ber, data, SEQUENCE).find(({ tag }) => tag === SEQUENCE);
  const [, content] = childrenOf(ber, carried, SEQUENCE);
  const [octets] = childrenOf(ber, content, EXPLICIT);
  if (octets?.tag === OCTETS) return ber.subarray(octets.from, octets.to);
  const pieces = childrenOf(ber, octets, OCTETS_IN_PIECES);
  if (pieces.length === 0) return undefined;
  return Buffer.concat(pieces.map(({ from, to }) => ber.subarray(from, to)));
}

function childrenOf(ber: Buffer, parent: Element | undefined, tag: number): readonly Element[] {
  const children: Element[] = [];
  if (parent?.tag !== tag) return children;
  for (let at = parent.from; at < parent.to; ) {
    const child = elementAt(ber, at);
    if (child === undefined) return [];
    children.push(child);
    at = child.next;
  }
  return children;
}

function elementAt(ber: Buffer, at: number, depth = 0): Element | undefined {
  const tag = ber[at];
  const size = ber[at + 1];
  if (tag === undefined || size === undefined || depth > MAX_BER_DEPTH) return undefined;
  let from = at + 2;
  if (size === INDEFINITE) {
    for (let child = from; ; ) {
      if (ber[child] === 0 && ber[child + 1] === 0)
        return { tag, from, to: child, next: child + 2 };
      const inner = elementAt(ber, child, depth + 1);
      if (inner === undefined) return undefined;
      child = inner.next;
    }
  }
  let length = size;
  if (size > INDEFINITE) {
    const digits = size - INDEFINITE;
    if (digits > 4 || from + digits > ber.length) return undefined;
    length = ber.readUIntBE(from, digits);
    from += digits;
  }
  const to = from + length;
  return to > ber.length ? undefined : { tag, from, to, next: to };
}
