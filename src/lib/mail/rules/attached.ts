// The files of a mail, and the lines that name those that are not read.

import { headOf, visibleText } from '../../text/cut.ts';

/** Characters of a mail's text that are examined before quotes are cut. */
export const MAX_WHOLE_TEXT_CHARS = 256 * 1024;
const MAX_NAMED_ATTACHMENTS = 10;
/** Mostly logos of signatures. */
const MAX_NAMED_INLINE = 3;
const MAX_LABEL_CHARS = 100;

export type AttachedPart = {
  readonly name: string;
  readonly type: string;
  readonly bytes: number;
  /** Mail programs show it inside the text; mostly pictures. */
  readonly isInline: boolean;
};

/** One line per attachment, so that the model can say that it has not read it. */
export function attachmentNotes(parts: readonly AttachedPart[]): readonly string[] {
  const attached = parts.filter((part) => !part.isInline);
  const inline = parts.filter((part) => part.isInline);
  return [
    ...notesOf(attached, MAX_NAMED_ATTACHMENTS, 'attachment'),
    ...notesOf(inline, MAX_NAMED_INLINE, 'inline part'),
  ];
}

function notesOf(parts: readonly AttachedPart[], maximum: number, kind: string): readonly string[] {
  const named = parts.slice(0, maximum).map(({ name, type, bytes }) => {
    const label = headOf(visibleText(name).replace(/\s+/g, ' '), MAX_LABEL_CHARS);
    const size = bytes.toLocaleString('en-US');
    const what = kind === 'inline part' && type.startsWith('image/') ? 'inline image' : kind;
    return `[${what}, not read: ${label} (${type}, ${size} bytes)]`;
  });
  const more = parts.length - named.length;
  return more > 0 ? [...named, `[${more} more ${kind}s, not read]`] : named;
}
