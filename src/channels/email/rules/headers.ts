// A mail's header block as a list in wire order: what every rule about mail reads. Decoding of
// encoded words and bodies is left to the parser.

import type { AttachmentKind } from '../../../kernel/message/attachment.ts';
import type { AttachedPart } from './text.ts';

export type MailHeader = {
  /** Lower case. */
  readonly name: string;
  /** Unfolded, otherwise as it stands in the mail. */
  readonly value: string;
};

export type MailHeaders = readonly MailHeader[];

/** Splits a header block (without the empty line) into fields; a line that is none is dropped. */
export function parseHeaderBlock(block: string): MailHeaders {
  const headers: MailHeader[] = [];
  const unfolded = block.replace(/\r\n?/g, '\n').replace(/\n[ \t]+/g, ' ');
  for (const line of unfolded.split('\n')) {
    const match = /^([!-9;-~]+)[ \t]*:(.*)$/.exec(line);
    if (match === null) continue;
    headers.push({ name: (match[1] ?? '').toLowerCase(), value: (match[2] ?? '').trim() });
  }
  return headers;
}

/** Values of every field of the name, topmost first. */
export function headerValues(headers: MailHeaders, name: string): readonly string[] {
  return headers.filter((header) => header.name === name).map((header) => header.value);
}

/** Value of the topmost field of the name. */
export function headerValue(headers: MailHeaders, name: string): string | undefined {
  return headers.find((header) => header.name === name)?.value;
}

/** Takes RFC 5322 comments out of a structured field value; quoted strings stay as they are. */
export function withoutComments(value: string): string {
  let result = '';
  let depth = 0;
  let isQuoted = false;
  for (let index = 0; index < value.length; index += 1) {
    const char = value.charAt(index);
    if (char === '\\' && (isQuoted || depth > 0)) {
      if (depth === 0) result += value.slice(index, index + 2);
      index += 1;
    } else if (char === '"' && depth === 0) {
      isQuoted = !isQuoted;
      result += char;
    } else if (char === '(' && !isQuoted) {
      depth += 1;
    } else if (char === ')' && !isQuoted && depth > 0) {
      depth -= 1;
      result += ' ';
    } else if (depth === 0) {
      result += char;
    }
  }
  return result;
}

/** Message ids (`<left@right>`) of a field, in order, without duplicates; malformed ones dropped. */
export function messageIdsIn(value: string | undefined): readonly string[] {
  const ids = value?.match(/<[^<>\s@]{1,200}@[^<>\s@]{1,200}>/g) ?? [];
  return [...new Set(ids)];
}

// Which parts of a mail come along with its message as files, and which are only named: the logos of
// signatures and what is too many for one message.

const MAX_CARRIED = 20;
/** Smaller pictures inside the text are ornaments for the most part. */
const MIN_INLINE_BYTES = 10_000;

/** `index`: the place among the mail's attachments. */
export type CarriedPart = AttachedPart & { readonly index: number };

export type SortedParts = {
  readonly carried: readonly CarriedPart[];
  readonly leftOut: readonly AttachedPart[];
};

export function sortParts(parts: readonly AttachedPart[]): SortedParts {
  const numbered = parts.map((part, index) => ({ ...part, index }));
  const carried = numbered.filter(isFile).slice(0, MAX_CARRIED);
  const isCarried = new Set(carried.map(({ index }) => index));
  return { carried, leftOut: parts.filter((_, index) => !isCarried.has(index)) };
}

function isFile({ isInline, type, bytes }: AttachedPart): boolean {
  if (bytes === 0) return false;
  return !isInline || (type.startsWith('image/') && bytes >= MIN_INLINE_BYTES);
}

export function kindOfPart({ type }: AttachedPart): AttachmentKind {
  const [family] = type.toLowerCase().split('/', 1);
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'document';
}
