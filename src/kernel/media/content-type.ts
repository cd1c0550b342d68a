// What a content is, found out from its first bytes: what a sender or a file name says of it is not
// believed. Text is never taken for an image, whatever markup it is.

import { decodeMarked } from '../../lib/text/decode-text.ts';

/** Enough for archives that say what they are in one of their first entries. */
export const HEAD_BYTES = 65_536;

const UNKNOWN = 'application/octet-stream';
/** Types found by markup rather than by a signature of bytes. */
const MARKUP = /^(?:application\/xml|text\/.*|image\/svg\+xml)$/;
/** Controls that no text has; the escape is in coloured logs. */
const BINARY = /(?!\s)\p{Cc}/u;
const ESCAPE = '\u001b';

/** @param head the content, or its first `HEAD_BYTES` */
export async function contentTypeOf(head: Uint8Array): Promise<string> {
  if (head.length === 0) return UNKNOWN;
  // The mark of UTF-16 looks like the beginning of a sound.
  if (decodeMarked(head, true) !== undefined) return 'text/plain';
  // Loaded with the first file, so that a start does not wait for it.
  const { fileTypeFromBuffer } = await import('file-type');
  const found = await fileTypeFromBuffer(head).catch(() => undefined);
  if (found !== undefined && !MARKUP.test(found.mime)) {
    return found.mime.split(';', 1)[0]?.trim() ?? UNKNOWN;
  }
  return isText(head) ? 'text/plain' : UNKNOWN;
}

function isText(head: Uint8Array): boolean {
  try {
    // The cut may stand inside a character, so the end is left open.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true });
    return !BINARY.test(text.replaceAll(ESCAPE, ''));
  } catch {
    return false;
  }
}
