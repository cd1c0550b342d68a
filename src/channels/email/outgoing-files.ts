// The files of an answer on their way into its mail: read from the store, and what is no longer
// there, or more than servers take in one mail, said in the text instead.

import type { OutboundAttachment } from '../../core/attachment.ts';
import type { OutboundMessage } from '../../core/message.ts';
import { fileNameOf, withoutFiles } from '../../core/outbound-files.ts';
import type { MediaStore } from '../../media/media.ts';

/** RFC 2045 section 5.1: anything else would end the header field. */
const MIME_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/;

/**
 * Of all files of one mail. Most servers take 20 to 25 MB, and base64 makes a third more of a file (RFC
 * 2045 section 6.8); one that does not would keep the text too.
 */
export const MAX_UPLOAD_BYTES = 15_000_000;

export type MailFile = {
  readonly name: string;
  readonly type: string;
  readonly content: Uint8Array;
};

export type Packed = {
  /** With the files' captions below, and a line for each file that stays behind. */
  readonly markdown: string;
  readonly files: readonly MailFile[];
};

export async function packFiles(message: OutboundMessage, media: MediaStore): Promise<Packed> {
  const files: MailFile[] = [];
  const lost: OutboundAttachment[] = [];
  const captions: string[] = [];
  let bytes = 0;
  for (const attachment of message.attachments ?? []) {
    const fits = bytes + attachment.sizeBytes <= MAX_UPLOAD_BYTES;
    const content = fits ? await media.read(attachment.media) : undefined;
    if (content === undefined) {
      lost.push(attachment);
      continue;
    }
    bytes += content.length;
    const name = fileNameOf(attachment.name);
    const { mimeType, caption } = attachment;
    const type = MIME_TYPE.test(mimeType) ? mimeType : 'application/octet-stream';
    files.push({ name, type, content });
    if (caption !== undefined) captions.push(`${name}: ${caption}`);
  }
  const { markdown } = withoutFiles({ ...message, attachments: lost });
  return { markdown: [markdown, ...captions].filter((part) => part !== '').join('\n\n'), files };
}
