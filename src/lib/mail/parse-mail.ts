// Parses a mail in one pass and within bounds: its header, its text as a person sees it, and its
// files. Loads the parser, so it belongs into a thread of its own.

import { Transform } from 'node:stream';
import type { AddressObject, HeaderLines, Headers, MessageText } from 'mailparser';
import { MailParser } from 'mailparser';
import { htmlText } from '../html/html-text.ts';
import { visibleText } from '../text/cut.ts';
import { passingPieces, type RawMail } from './raw-mail.ts';
import { type AttachedPart, MAX_WHOLE_TEXT_CHARS } from './rules/attached.ts';

/** Includes what is not shown of it. */
const MAX_PLAIN_CHARS = 1.25 * MAX_WHOLE_TEXT_CHARS;

/** `head`: the start of its content. */
export type MimePart = { readonly part: AttachedPart; readonly head: Buffer };

export type ReadMail = {
  readonly fromName: string | undefined;
  /** Names and addresses, decoded; empty without such a field. */
  readonly from: string;
  readonly to: string;
  readonly cc: string;
  /** As written. */
  readonly date: string;
  readonly subject: string;
  /** The visible text of its two versions. */
  readonly plain: string;
  readonly html: string;
  readonly parts: readonly MimePart[];
};

/** @param keptBytes how much of the start of a file of this type is kept */
export async function readMail(
  raw: RawMail,
  wanted: Wanted,
  keptBytes: (type: string) => number,
): Promise<ReadMail> {
  const { found, headers, cutBytes } = openMail(raw, wanted);
  const parts: MimePart[] = [];
  let words: Partial<MessageText> = {};
  for await (const one of found) {
    if (one.type === 'text') words = one;
    else parts.push(await partOf(one, keptBytes(one.contentType), cutBytes));
  }
  const plain = visibleText((words.text ?? '').slice(0, MAX_PLAIN_CHARS));
  const html = typeof words.html === 'string' ? visibleText(htmlToVisibleText(words.html)) : '';
  const subject = headers.get('subject');
  return {
    fromName: addressesIn(headers, 'from')[0]?.value[0]?.name,
    ...{ from: textOf(headers, 'from'), to: textOf(headers, 'to'), cc: textOf(headers, 'cc') },
    date: `${headers.get('date') ?? ''}`,
    subject: typeof subject === 'string' ? subject : '',
    ...{ plain, html, parts },
  };
}

const addressesIn = (headers: Headers, name: string) =>
  [headers.get(name) ?? []]
    .flat()
    .filter((one): one is AddressObject => Object.hasOwn(Object(one), 'value'));

const textOf = (headers: Headers, name: string) =>
  addressesIn(headers, name)
    .map(({ text }) => text)
    .join(', ');

async function partOf(
  { contentType: type, filename, related, content, release }: Found,
  keptBytes: number,
  cutBytes: () => number | undefined,
): Promise<MimePart> {
  const head: Buffer[] = [];
  let bytes = 0;
  for await (const piece of content) {
    if (bytes < keptBytes) head.push(piece.subarray(0, keptBytes - bytes));
    bytes += piece.length;
  }
  const isInline = related === true;
  const part = { name: filename ?? 'unnamed', type, bytes: cutBytes() ?? bytes, isInline };
  release();
  return { part, head: Buffer.concat(head) };
}

/** As mailparser emits it; its types omit some fields. */
type Found = {
  readonly type: 'attachment';
  readonly contentType: string;
  readonly filename?: string;
  readonly related?: boolean;
  readonly content: AsyncIterable<Buffer>;
  release(): void;
};

type OpenMail = {
  /** Its texts and files in order; the next comes when a file was read and released. */
  readonly found: AsyncIterable<Found | MessageText>;
  /** Complete when the first of them was found; the date as written. */
  readonly headers: Headers;
  /** The decoded size of the current part if it was truncated. */
  cutBytes(): number | undefined;
};

/** Reads the mail in one pass, piece by piece, so that memory does not grow with its size. */
export function openMail(raw: RawMail, wanted: Wanted): OpenMail {
  const parser = new MailParser({
    skipHtmlToText: true,
    skipTextToHtml: true,
    skipImageLinks: true,
    keepDeliveryStatus: true,
  });
  const headers: Headers = new Map();
  parser.on('headers', (some: Headers) => {
    for (const [key, value] of some) headers.set(key, value);
  });
  // The parser takes the current time for a date that it cannot read.
  parser.on('headerLines', (lines: HeaderLines) => {
    const date = lines.find(({ key }) => key === 'date')?.line ?? '';
    headers.set('date', date.replace(/^[^:]*:/, '').trim());
  });
  const cutBytes = boundBodies(parser, wanted);
  feed(parser, raw).catch((error) => parser.destroy(error));
  return { found: parser, headers, cutBytes };
}

/** Feeds one piece at a time: the parser has copied it when it asks for the next. */
async function feed(parser: MailParser, raw: RawMail): Promise<void> {
  for (const piece of passingPieces(raw)) {
    await new Promise<void>((resolve, reject) => {
      parser.write(piece, (error) => (error ? reject(error) : resolve()));
    });
  }
  parser.end();
}

// Bounds how much of the body of each part a parser takes, which its options cannot do. Unwanted
// bytes never reach its decoders, which keep texts and quoted-printable whole.

/** For all texts of a mail together, encoded. */
const MAX_TEXT_BYTES = 768 * 1024;
/** For one file, encoded: enough for a calendar or a report. */
const MAX_HEAD_BYTES = 512 * 1024;

/**
 * `beginnings`: the texts and the start of each file; `files`: whole files and no text; `all`: the
 * texts and whole files.
 */
type Wanted = 'beginnings' | 'files' | 'all';

/** The internals of mailparser used here; its types omit them. */
type Inside = {
  processChunk(chunk: Chunk, done: (error?: Error) => void): void;
  readonly curnode: { readonly isAttachment?: boolean } | false;
};

type Chunk =
  | { readonly type: 'node'; readonly encoding: string | false; getDecoder(): Transform }
  | { readonly type: 'body'; readonly value: Buffer }
  | { readonly type: 'data' };

/** Returns the decoded size of the current part if it was truncated. */
function boundBodies(parser: MailParser, wanted: Wanted): () => number | undefined {
  const inside = parser as unknown as Inside;
  const process = inside.processChunk.bind(parser);
  const maxFileBytes = wanted === 'beginnings' ? MAX_HEAD_BYTES : Number.POSITIVE_INFINITY;
  let textLeft = wanted === 'files' ? 0 : MAX_TEXT_BYTES;
  let part = new PartSize(false);

  inside.processChunk = (chunk, done) => {
    if (chunk.type === 'node') {
      part = new PartSize(chunk.encoding);
      if (wanted === 'files' && chunk.encoding === 'quoted-printable') {
        chunk.getDecoder = quotedPrintableDecoder;
      }
    }
    if (chunk.type !== 'body') return process(chunk, done);
    const { value } = chunk;
    const isFile = inside.curnode !== false && inside.curnode.isAttachment === true;
    const left = isFile ? maxFileBytes - part.rawBytes : textLeft;
    const taken = value.subarray(0, Math.max(0, left));
    if (isFile) part.add(value, taken.length < value.length);
    else textLeft -= taken.length;
    if (taken.length > 0) process({ ...chunk, value: taken }, done);
    else setImmediate(done);
  };
  return () => part.decodedBytes();
}

class PartSize {
  readonly #encoding: string | false;
  #isCut = false;
  #digits = 0;
  #escapes = 0;
  rawBytes = 0;

  constructor(encoding: string | false) {
    this.#encoding = encoding;
  }

  add(value: Buffer, isCut: boolean): void {
    this.#isCut ||= isCut;
    this.rawBytes += value.length;
    if (this.#encoding === 'base64') this.#digits += count(value, isDigit);
    else if (this.#encoding === 'quoted-printable') this.#escapes += count(value, isEscape);
  }

  decodedBytes(): number | undefined {
    if (!this.#isCut) return undefined;
    if (this.#encoding === 'base64') return Math.floor((this.#digits * 3) / 4);
    return this.rawBytes - 2 * this.#escapes;
  }
}

const isEscape = (byte: number) => byte === 0x3d;

/** A base64 character other than padding and line ends. */
const isDigit = (byte: number) => byte > 0x20 && byte !== 0x3d;

function count(value: Buffer, isCounted: (byte: number) => boolean): number {
  let found = 0;
  for (const byte of value) if (isCounted(byte)) found += 1;
  return found;
}

// Decodes quoted-printable (RFC 2045 section 6.7) as a stream, for files too large to hold in
// memory. Invalid escapes stay as written.

const LF = 0x0a;
const EQUALS = 0x3d;
/** Longer lines are decoded in pieces. */
const MAX_LINE_BYTES = 256 * 1024;

const BLANKS_BEFORE_END = /(^|[^\t ])[\t ]+(?=[\r\n])/g;
const BLANKS_AT_END = /(^|[^\t ])[\t ]+$/;
const SOFT_BREAK = /=\r?\n/g;
const SOFT_END = /=$/;
const ESCAPE = /=([\da-f]{2})/gi;

export function quotedPrintableDecoder(): Transform {
  let pending: Buffer = Buffer.alloc(0);
  return new Transform({
    transform(chunk: Buffer, _, done) {
      const all = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const lines = all.lastIndexOf(LF) + 1;
      const isEndless = lines === 0 && all.length > MAX_LINE_BYTES;
      const end = isEndless ? Math.max(all.lastIndexOf(EQUALS), 0) || all.length : lines;
      pending = all.subarray(end);
      done(null, decoded(all.toString('latin1', 0, end).replace(BLANKS_BEFORE_END, '$1')));
    },
    flush(done) {
      const rest = pending.toString('latin1').replace(BLANKS_BEFORE_END, '$1');
      done(null, decoded(rest.replace(BLANKS_AT_END, '$1').replace(SOFT_END, '')));
    },
  });
}

function decoded(text: string): Buffer {
  const bytes = text
    .replace(SOFT_BREAK, '')
    .replace(ESCAPE, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}

// The text that a person sees of an HTML mail (case E23).

/** Without embedded pictures. */
const MAX_HTML_CHARS = 500_000;
/** A picture embedded in the text. */
const INLINE_PICTURE = /(data:image\/[a-z0-9.+-]{1,40};base64,)[a-z0-9+/=\s]{100,}/gi;

const htmlToVisibleText = (html: string): string =>
  htmlText(html.replace(INLINE_PICTURE, '$1').slice(0, MAX_HTML_CHARS), { links: /^https?:/i });
