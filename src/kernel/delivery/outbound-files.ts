// What goes out with an answer, by what it is; and in words, for a door that carries no files.

import { tailOf } from '../../lib/text/cut.ts';
import type { MediaStore } from '../media/media.ts';
import type { AttachmentKind, OutboundAttachment } from '../message/attachment.ts';
import { attachmentTitle } from '../message/attachment.ts';
import { DeliveryError, NEVER } from '../message/errors.ts';
import type { OutboundMessage } from '../message/message.ts';

const KINDS: readonly (readonly [RegExp, AttachmentKind])[] = [
  [/^image\/(?:png|jpeg|webp)$/, 'image'],
  [/^video\/mp4$/, 'video'],
  [/^audio\//, 'audio'],
];

/** As what a content of that type is sent; what a phone does not show by itself is a document. */
export function sentKindOf(mimeType: string): AttachmentKind {
  return KINDS.find(([types]) => types.test(mimeType))?.[1] ?? 'document';
}

const MAX_NAME_CHARS = 120;

/** A file name without folders, controls and signs that some system gives a meaning. */
export function fileNameOf(text: string): string {
  const last = text.toWellFormed().split(/[/\\]/).at(-1) ?? '';
  const name = last.replace(/[\p{C}<>:"|?*]/gu, '_').replace(/^[.\s]+|[.\s]+$/g, '');
  return name === '' ? 'file' : tailOf(name, MAX_NAME_CHARS);
}

/** The message with its files as lines that say they stayed behind. */
export function withoutFiles(message: OutboundMessage): OutboundMessage {
  const { attachments = [], ...rest } = message;
  if (attachments.length === 0) return message;
  const lines = attachments.map(({ kind, name, sizeBytes, caption }) => {
    const title = attachmentTitle({ kind, name, sizeBytes, content: UNSENT });
    return `(The ${title} could not be sent here.)${caption === undefined ? '' : `\n\n${caption}`}`;
  });
  return {
    ...rest,
    markdown: [rest.markdown, ...lines].filter((part) => part !== '').join('\n\n'),
  };
}

const UNSENT = { kind: 'unread', reason: '' } as const;

/** Files that one message of the platform can hold together, in their order. */
export function albumsOf(
  attachments: readonly OutboundAttachment[],
  groupOf: (attachment: OutboundAttachment) => string | undefined,
  size: number,
): readonly (readonly [OutboundAttachment, ...OutboundAttachment[]])[] {
  const albums: [OutboundAttachment, ...OutboundAttachment[]][] = [];
  for (const attachment of attachments) {
    const last = albums.at(-1);
    const group = groupOf(attachment);
    const fits = last !== undefined && last.length < size && groupOf(last[0]) === group;
    if (fits && group !== undefined) last.push(attachment);
    else albums.push([attachment]);
  }
  return albums;
}

/** @throws DeliveryError where the media store does not have the file any more */
export async function contentToSend(
  { media }: OutboundAttachment,
  store: MediaStore | undefined,
): Promise<Uint8Array> {
  const content = await store?.read(media);
  if (content === undefined) throw mediaGone();
  return content;
}

export const mediaGone = () =>
  new DeliveryError('a file of the answer is not in the media store any more', {
    certainty: 'not_sent',
    remedy: NEVER,
    code: 'media_gone',
  });
