// Decodes quoted-printable (RFC 2045 section 6.7) as it comes, for files too large to be kept whole.
// What is no escape stays as it stands.

import { Transform } from 'node:stream';

const LF = 0x0a;
const EQUALS = 0x3d;
/** A line this long is decoded in pieces. */
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
