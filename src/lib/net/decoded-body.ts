// Reads the body of an answer, counted as it comes and again while it is decompressed, so that
// neither an endless body nor a bomb takes more memory than its limit (case X14).

import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import { SafeFetchError } from './safe-fetch-error.ts';

export type BodyLimits = {
  /** Bytes as they come over the wire. */
  readonly maxBytes: number;
  /** Bytes after decompression. */
  readonly maxDecompressedBytes: number;
};

/** What we can decompress, as a request says it. */
export const ACCEPTED_ENCODINGS = 'gzip, deflate, br, zstd';

const ZLIB_METHOD = 8;

/** @throws SafeFetchError too_large, unreadable; what the source throws */
export async function readBody(
  source: AsyncIterable<Uint8Array>,
  contentEncoding: string,
  limits: BodyLimits,
): Promise<Uint8Array> {
  const raw = counted(source, limits.maxBytes, 'the answer');
  const pieces: Uint8Array[] = [];
  const collect = async (decoded: AsyncIterable<Uint8Array>) => {
    const whole = counted(decoded, limits.maxDecompressedBytes, 'the decompressed answer');
    for await (const piece of whole) pieces.push(piece);
  };
  const encoding = contentEncoding.trim().toLowerCase();
  if (encoding === '' || encoding === 'identity') {
    await collect(raw);
  } else {
    const { first, rest } = await peeked(raw);
    if (first.length > 0) await pipeline(rest, decoderFor(encoding, first), collect).catch(explain);
  }
  return Buffer.concat(pieces);
}

async function* counted(
  source: AsyncIterable<Uint8Array>,
  maximum: number,
  what: string,
): AsyncGenerator<Uint8Array, void, void> {
  let bytes = 0;
  for await (const piece of source) {
    bytes += piece.length;
    if (bytes > maximum) {
      throw new SafeFetchError('too_large', `${what} is larger than ${inWords(maximum)}`);
    }
    yield piece;
  }
}

const inWords = (bytes: number) =>
  bytes < 1_000_000 ? `${bytes.toLocaleString('en-US')} bytes` : `${bytes / 1_000_000} MB`;

async function peeked(source: AsyncGenerator<Uint8Array, void, void>) {
  const next = await source.next();
  const first = next.done === true ? new Uint8Array() : next.value;
  async function* rest() {
    yield first;
    yield* source;
  }
  return { first, rest: rest() };
}

/** One encoding: several in a row only serve to hide a bomb in a bomb. */
function decoderFor(encoding: string, first: Uint8Array): Transform {
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'deflate':
      // Some servers leave out the zlib header (RFC 9110 section 8.4.1.2).
      return ((first[0] ?? 0) & 0x0f) === ZLIB_METHOD ? createInflate() : createInflateRaw();
    case 'br':
      return createBrotliDecompress();
    case 'zstd':
      return createZstdDecompress();
    default:
      throw new SafeFetchError('unreadable', 'the answer is compressed in a way we cannot read');
  }
}

function explain(error: unknown): never {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (!/^(Z_|ERR_|ZSTD_)/.test(code) || code === 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  throw new SafeFetchError('unreadable', 'the answer is not what its compression says', {
    cause: error,
  });
}
