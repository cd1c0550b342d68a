// Which parts of a mail come along with its message as files, and which are only named: the logos of
// signatures and what is too many for one message.

import type { AttachmentKind } from '../attachment.ts';
import type { AttachedPart } from './text.ts';

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
