// What came for an address: a page to be read, text as it is, or something that is named only.

import { decodeText } from '../../lib/text/decode-text.ts';

/** `label` says in words what it is. */
export type FetchedKind =
  | { readonly kind: 'page' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'other'; readonly label: string };

const PAGE_TYPES = ['text/html', 'application/xhtml+xml'];
const TEXT_TYPE =
  /^(?:text\/|application\/(?:(?:[a-z0-9.-]+\+)?(?:json|xml|yaml)|x-yaml|x-ndjson|jsonl?|javascript|ecmascript|toml|sql|graphql|x-sh|rtf|x-subrip)$)/;
const SNIFFED_CHARS = 512;
const SIGNATURES: readonly (readonly [signature: string, label: string])[] = [
  ['%PDF-', 'a PDF document'],
  ['PK\u0003\u0004', 'a ZIP archive or an office document'],
  ['\u0089PNG', 'a PNG image'],
  ['\u00ff\u00d8\u00ff', 'a JPEG image'],
  ['GIF8', 'a GIF image'],
  ['\u001f\u008b', 'a gzip archive'],
];

export function fetchedKind(body: Uint8Array, contentType: string): FetchedKind {
  const mimeType = (contentType.split(';')[0] ?? '').trim().toLowerCase();
  const head = Buffer.from(body.subarray(0, SNIFFED_CHARS)).toString('latin1');
  const signature = SIGNATURES.find(([start]) => head.startsWith(start));
  if (signature !== undefined) return { kind: 'other', label: signature[1] };
  const isPage =
    PAGE_TYPES.includes(mimeType) || (mimeType === '' && /<(?:!doctype )?html/i.test(head));
  if (isPage) return { kind: 'page' };
  if (mimeType !== '' && !TEXT_TYPE.test(mimeType)) {
    const name = /^[a-z0-9.+-]+\/[a-z0-9.+-]+$/.test(mimeType) ? mimeType : 'of an unknown type';
    return { kind: 'other', label: `a file (${name})` };
  }
  const text = decoded(body, contentType);
  return text === undefined ? { kind: 'other', label: 'binary data' } : { kind: 'text', text };
}

/** Undefined for what is no text in the character set it claims, or in any where it claims none. */
function decoded(body: Uint8Array, contentType: string): string | undefined {
  const charset = /charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1];
  if (charset === undefined) return decodeText(body);
  const text = (decoderFor(charset) ?? new TextDecoder()).decode(body);
  return text.includes('\0') ? undefined : text;
}

function decoderFor(charset: string): TextDecoder | undefined {
  try {
    return new TextDecoder(charset);
  } catch {
    return undefined;
  }
}
