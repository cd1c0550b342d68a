// A mail fetched piece by piece (RFC 3501 section 6.4.5, partial fetch), so that none is ever in memory
// as a whole and every piece has a deadline of its own.

import type { FetchMessageObject, FetchQueryObject } from 'imapflow';
import { serverFault } from './imap-failure.ts';
import { MAX_MEMORY_BYTES } from './mail-spool.ts';
import { MAX_MAIL_BYTES } from './mime-limits.ts';

type Ask = (query: FetchQueryObject) => Promise<FetchMessageObject | undefined>;

/** The usual mail comes in one. */
const FIRST_PIECE_BYTES = MAX_MEMORY_BYTES;
const PIECE_BYTES = 512 * 1024;

/** Ends behind the limit: what goes on is too large, whatever the server said of its size. */
export async function* bodyPieces(ask: Ask): AsyncGenerator<Buffer, void, void> {
  let bytes = 0;
  for await (const piece of sectionPieces(wholeOf(ask))) {
    bytes += piece.length;
    yield piece;
    if (bytes > MAX_MAIL_BYTES) return;
  }
  if (bytes > 0) return;
  // Some servers say OK without a body; asked for it in two parts they have it.
  const { headers } = (await ask({ headers: true })) ?? {};
  if (headers === undefined) return;
  for await (const piece of sectionPieces(textOf(ask))) {
    if (bytes === 0) yield headers;
    bytes += piece.length;
    yield piece;
    if (bytes > MAX_MAIL_BYTES) return;
  }
}

type Section = (
  start: number,
  maxLength: number,
) => Promise<{ readonly piece: Buffer | undefined; readonly size: number }>;

const wholeOf =
  (ask: Ask): Section =>
  async (start, maxLength) => {
    const found = await ask({ size: true, source: { start, maxLength } });
    return { piece: found?.source, size: found?.size ?? Number.POSITIVE_INFINITY };
  };

const textOf =
  (ask: Ask): Section =>
  async (start, maxLength) => {
    const found = await ask({ bodyParts: [{ key: 'TEXT', start, maxLength }] });
    return { piece: found?.bodyParts?.get('text'), size: Number.POSITIVE_INFINITY };
  };

async function* sectionPieces(ask: Section): AsyncGenerator<Buffer, void, void> {
  for (let start = 0; ; ) {
    const wanted = start === 0 ? FIRST_PIECE_BYTES : PIECE_BYTES;
    const { piece, size } = await ask(start, wanted);
    if (piece === undefined && start > 0 && start < size) {
      throw serverFault('the server left out the end of a mail');
    }
    if (piece === undefined || piece.length === 0) return;
    yield piece;
    // Less than asked for is the end; more is everything, from a server that knows no partial fetch.
    if (piece.length !== wanted) return;
    start += wanted;
  }
}
