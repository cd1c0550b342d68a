// Files of the chats of a built-in channel: uploaded before the message that names them, and shown from the
// media store for as long as it keeps them.

import { fileNameOf, mediaGone, sentKindOf } from '../../kernel/delivery/undelivered.ts';
import type { MediaStore, StoredMedia } from '../../kernel/media/media.ts';
import type { Attachment, OutboundAttachment } from '../../kernel/message/attachment.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import { AttachmentError, type Attachments } from '../channel.ts';
import { type DoorFile, type DoorFileRef, type DoorFiles, DoorNameError } from '../door.ts';
import type { Said } from './door-rows.ts';

const described = ({ id, mimeType, sizeBytes }: StoredMedia, name: string): DoorFile => ({
  media: id,
  name: fileNameOf(name),
  kind: sentKindOf(mimeType),
  mimeType,
  sizeBytes,
});

/** `media` waits for the gateway. */
export function createDoorFiles(
  media: () => Promise<MediaStore>,
  maxBytes: () => number,
): DoorFiles {
  return {
    maxBytes,
    async keep(name, content) {
      const stored = await (await media()).put(content, { maxBytes: maxBytes() });
      return described(stored, name);
    },
    read: async (id) => (await media()).read(id),
  };
}

/** What comes here is in the media store already; nothing limits what goes out. */
export const DOOR_ATTACHMENTS: Attachments = {
  maxUploadBytes: Number.MAX_SAFE_INTEGER,
  maxCaptionUnits: Number.MAX_SAFE_INTEGER,
  fetch: () => {
    throw new AttachmentError('door_file', 'it was not uploaded here', { isFinal: true });
  },
};

/** @throws DoorNameError for a file that was not uploaded, or was swept since */
export function filesNamed(
  media: MediaStore,
  refs: readonly DoorFileRef[],
): Promise<readonly DoorFile[]> {
  const files = refs.map(async (ref) => {
    const stored = await media.stat(ref.media);
    if (stored !== undefined) return described(stored, ref.name);
    throw new DoorNameError('A file is not there any more: attach it again.');
  });
  return Promise.all(files);
}

/** @throws DeliveryError where a file of the answer is not kept any more */
export async function requireKept(
  media: MediaStore,
  attachments: readonly OutboundAttachment[] = [],
): Promise<void> {
  for (const file of attachments) {
    if ((await media.stat(file.media)) === undefined) throw mediaGone();
  }
}

export const attachmentOf = ({ media, ...file }: DoorFile): Attachment => ({
  ...file,
  content: { kind: 'stored', media },
});

const fileOfAnswer = ({ caption: _shown, ...file }: OutboundAttachment): DoorFile => file;

/** An answer as the log keeps it, its captions below the text; undefined where it says nothing. */
export function saidOf(message: OutboundMessage): Omit<Said, 'at'> | undefined {
  const { id, markdown, replyTo, choices, attachments = [] } = message;
  const captions = attachments.flatMap(({ caption }) => caption ?? []);
  const text = [markdown, ...captions].filter((part) => part.trim() !== '').join('\n\n');
  if (text === '' && attachments.length === 0) return undefined;
  return {
    id,
    from: 'agent',
    text,
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(choices === undefined ? {} : { choices }),
    ...(attachments.length === 0 ? {} : { files: attachments.map(fileOfAnswer) }),
  };
}
