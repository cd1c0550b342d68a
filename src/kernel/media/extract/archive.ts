// The parts of a zip archive, by name, each unpacked only on demand and within the limits. Sizes
// stated in the archive are not trusted, its names are never paths, nested archives stay closed.

import { inflateRawSync } from 'node:zlib';
import { systemCode } from '../../../lib/files/files.ts';
import { t } from '../../../lib/texts.ts';
import {
  DAMAGED,
  DocumentProblem,
  FREE_UNPACKED_BYTES,
  LOCKED,
  MAX_ARCHIVE_ENTRIES,
  MAX_RATIO,
  MAX_UNPACKED_BYTES,
} from './extract.ts';

/** Signatures and sizes of APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16. */
const END = 0x06054b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;
const END_BYTES = 22;
const ENTRY_BYTES = 46;
const LOCAL_BYTES = 30;
const MAX_COMMENT_BYTES = 65_535;
const ENCRYPTED = 1;
const STORED = 0;
const DEFLATED = 8;

const TOO_MANY = t`it holds more than ${MAX_ARCHIVE_ENTRIES.toLocaleString('en-US')} parts`;
const BOMB = t`it unpacks to far more than a document should`;
/** No office format has them (ECMA-376 part 2, 8.1.4), and decompression bombs use them. */
const DECLARATION = /<!(?:DOCTYPE|ENTITY)/i;
const DECLARED = t`it contains declarations that such a document must not have`;

type Entry = { readonly at: number; readonly packedBytes: number; readonly method: number };

export class Archive {
  readonly #bytes: Buffer;
  readonly #entries: ReadonlyMap<string, Entry>;
  #unpackedBytes = 0;

  /** @throws DocumentProblem */
  constructor(content: Uint8Array) {
    this.#bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
    this.#entries = entriesOf(this.#bytes);
  }

  get names(): readonly string[] {
    return [...this.#entries.keys()];
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /** Undefined if there is no such part. @throws DocumentProblem */
  read(name: string): Uint8Array | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined) return undefined;
    const packed = packedOf(this.#bytes, entry);
    const part = entry.method === STORED ? packed : inflated(packed, this.#roomFor(packed.length));
    this.#unpackedBytes += part.length;
    if (this.#unpackedBytes > MAX_UNPACKED_BYTES) throw new DocumentProblem(BOMB);
    return part;
  }

  /** UTF-8, or UTF-16 if a byte order mark says so. */
  text(name: string): string | undefined {
    const part = this.read(name);
    if (part === undefined) return undefined;
    const wide = part[0] === 0xff && part[1] === 0xfe ? 'utf-16le' : undefined;
    const wideBig = part[0] === 0xfe && part[1] === 0xff ? 'utf-16be' : undefined;
    return new TextDecoder(wide ?? wideBig ?? 'utf-8').decode(part);
  }

  /** XML of an office document. @throws DocumentProblem if entities are declared */
  xml(name: string): string | undefined {
    const text = this.text(name);
    if (text !== undefined && DECLARATION.test(text)) throw new DocumentProblem(DECLARED);
    return text;
  }

  #roomFor(packedBytes: number): number {
    const left = Math.max(1, MAX_UNPACKED_BYTES - this.#unpackedBytes);
    return Math.min(left, Math.max(FREE_UNPACKED_BYTES, packedBytes * MAX_RATIO));
  }
}

function entriesOf(bytes: Buffer): ReadonlyMap<string, Entry> {
  const end = endOf(bytes);
  const count = bytes.readUInt16LE(end + 10);
  if (count > MAX_ARCHIVE_ENTRIES) throw new DocumentProblem(TOO_MANY);
  const entries = new Map<string, Entry>();
  let at = bytes.readUInt32LE(end + 16);
  for (let index = 0; index < count; index += 1) {
    if (at + ENTRY_BYTES > bytes.length || bytes.readUInt32LE(at) !== ENTRY) {
      throw new DocumentProblem(DAMAGED);
    }
    const nameBytes = bytes.readUInt16LE(at + 28);
    const name = bytes.toString('utf8', at + ENTRY_BYTES, at + ENTRY_BYTES + nameBytes);
    if ((bytes.readUInt16LE(at + 8) & ENCRYPTED) !== 0) throw new DocumentProblem(LOCKED);
    // Programs disagree about which of two parts with one name to show.
    if (entries.has(name)) throw new DocumentProblem(DAMAGED);
    entries.set(name, {
      at: bytes.readUInt32LE(at + 42),
      packedBytes: bytes.readUInt32LE(at + 20),
      method: bytes.readUInt16LE(at + 10),
    });
    at += ENTRY_BYTES + nameBytes + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
  }
  return entries;
}

function endOf(bytes: Buffer): number {
  const first = Math.max(0, bytes.length - END_BYTES - MAX_COMMENT_BYTES);
  for (let at = bytes.length - END_BYTES; at >= first; at -= 1) {
    if (bytes.readUInt32LE(at) === END) return at;
  }
  throw new DocumentProblem(DAMAGED);
}

function packedOf(bytes: Buffer, { at, packedBytes, method }: Entry): Buffer {
  const isLocal = at + LOCAL_BYTES <= bytes.length && bytes.readUInt32LE(at) === LOCAL;
  if (!isLocal || (method !== STORED && method !== DEFLATED)) throw new DocumentProblem(DAMAGED);
  const start = at + LOCAL_BYTES + bytes.readUInt16LE(at + 26) + bytes.readUInt16LE(at + 28);
  if (start + packedBytes > bytes.length) throw new DocumentProblem(DAMAGED);
  return bytes.subarray(start, start + packedBytes);
}

function inflated(packed: Buffer, maxOutputLength: number): Uint8Array {
  try {
    return inflateRawSync(packed, { maxOutputLength });
  } catch (error) {
    const isBomb = systemCode(error) === 'ERR_BUFFER_TOO_LARGE';
    throw new DocumentProblem(isBomb ? BOMB : DAMAGED);
  }
}
