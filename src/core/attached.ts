// Contents of the media store as a transcript names them: what came with a message, what a tool showed.
// Bytes are never among them.

import type { AttachmentKind } from './attachment.ts';
import { attachmentTitle } from './attachment-words.ts';
import type { MediaId } from './ids.ts';

export type AttachedMedia = {
  readonly media: MediaId;
  readonly kind: AttachmentKind;
  /** Found in the content, not what the sender says. */
  readonly mimeType: string;
  /** As the sender called it: shown, never trusted, never a path. */
  readonly name?: string;
};

const SHORT_ID_CHARS = 8;

export const isImage = ({ mimeType }: AttachedMedia) => mimeType.startsWith('image/');

/** By which a model names it; no key to anything outside of its own conversation. */
export const shortIdOf = ({ media }: Pick<AttachedMedia, 'media'>) =>
  media.slice(0, SHORT_ID_CHARS);

/** `photo "beach.jpg", id 0a1b2c3d` */
export function attachedTitle(attached: AttachedMedia): string {
  const { kind, name, media } = attached;
  const content = { kind: 'stored', media } as const;
  const title = attachmentTitle({ kind, content, ...(name === undefined ? {} : { name }) });
  return `${title}, id ${shortIdOf(attached)}`;
}

/**
 * What a model means by a name or the beginning of an id; the newest of several. Only what the
 * conversation itself holds is ever found.
 */
export function findAttached(
  attached: readonly AttachedMedia[],
  wanted: string,
): AttachedMedia | undefined {
  const plain = wanted.trim().toLowerCase();
  if (plain === '') return undefined;
  const isId = /^[0-9a-f]{6,64}$/.test(plain);
  return (
    attached.findLast(({ name }) => name?.toLowerCase() === plain) ??
    (isId ? attached.findLast(({ media }) => media.startsWith(plain)) : undefined)
  );
}
