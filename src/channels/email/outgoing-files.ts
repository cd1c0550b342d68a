// The files of an answer on their way into its mail: read from the store, and what is no longer
// there said in the text instead.

import type { OutboundAttachment } from '../../core/attachment.ts';
import type { OutboundMessage } from '../../core/message.ts';
import { fileNameOf, withoutFiles } from '../../core/outbound-files.ts';
import type { MediaStore } from '../../media/media.ts';

/** RFC 2045 section 5.1: anything else would end the header field. */
const MIME_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/;

export type MailFile = {
  readonly name: string;
  readonly type: string;
  readonly content: Uint8Array;
};

export type Packed = {
  /** With the files' captions below, and a line for each file that is lost. */
  readonly markdown: string;
  readonly files: readonly MailFile[];
};

export async function packFiles(message: OutboundMessage, media: MediaStore): Promise<Packed> {
  const files: MailFile[] = [];
  const lost: OutboundAttachment[] = [];
  const captions: string[] = [];
  for (const attachment of message.attachments ?? []) {
    const content = await media.read(attachment.media);
    if (content === undefined) {
      lost.push(attachment);
      continue;
    }
    const name = fileNameOf(attachment.name);
    const { mimeType, caption } = attachment;
    const type = MIME_TYPE.test(mimeType) ? mimeType : 'application/octet-stream';
    files.push({ name, type, content });
    if (caption !== undefined) captions.push(`${name}: ${caption}`);
  }
  const { markdown } = withoutFiles({ ...message, attachments: lost });
  return { markdown: [markdown, ...captions].filter((part) => part !== '').join('\n\n'), files };
}
