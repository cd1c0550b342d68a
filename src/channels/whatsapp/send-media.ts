// Files of an answer as WhatsApp messages: each one of its own, with its caption where that kind of
// message has one. The content is encrypted and uploaded by the library when the message is made.

import type { AnyMessageContent } from '@whiskeysockets/baileys';
import type { MediaStore } from '../../kernel/media/media.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import { DeliveryError, NEVER } from '../../kernel/message/errors.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import { MESSAGE_UNITS, textContent } from './edits.ts';
import { splitForWhatsApp } from './rules/markup.ts';

/** Longest caption a person can write, UTF-16 units. */
export const CAPTION_UNITS = 1024;

/** What becomes one WhatsApp message. */
export type Unit =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly file: OutboundAttachment; readonly caption?: string };

export function unitsOf({ markdown, attachments = [] }: OutboundMessage): readonly Unit[] {
  return [...textUnits(markdown), ...attachments.flatMap(fileUnits)];
}

const textUnits = (markdown: string): readonly Unit[] =>
  splitForWhatsApp(markdown, MESSAGE_UNITS).map((text) => ({ kind: 'text', text }));

function fileUnits(file: OutboundAttachment): readonly Unit[] {
  const { caption, kind } = file;
  if (caption === undefined) return [{ kind: 'file', file }];
  const parts = splitForWhatsApp(caption, CAPTION_UNITS);
  const [only, ...more] = parts;
  const fits = kind === 'image' || kind === 'video' || kind === 'document';
  if (only === undefined) return [{ kind: 'file', file }];
  if (fits && more.length === 0) return [{ kind: 'file', file, caption: only }];
  return [{ kind: 'file', file }, ...textUnits(caption)];
}

/** @throws DeliveryError where the media store does not have the file any more */
export async function contentOfUnit(unit: Unit, media: MediaStore): Promise<AnyMessageContent> {
  if (unit.kind === 'text') return textContent(unit.text);
  const content = await media.read(unit.file.media);
  if (content === undefined) {
    throw new DeliveryError('a file of the answer is not in the media store any more', {
      certainty: 'not_sent',
      remedy: NEVER,
      code: 'media_gone',
    });
  }
  return fileContent(unit.file, Buffer.from(content), unit.caption);
}

/** A preview is not made: it would be made by reading the file with another program's library. */
const NO_PREVIEW = { jpegThumbnail: '' } as const;

function fileContent(
  { kind, name, mimeType }: OutboundAttachment,
  content: Buffer,
  caption: string | undefined,
): AnyMessageContent {
  const words = caption === undefined ? {} : { caption };
  switch (kind) {
    case 'image':
      return { image: content, mimetype: mimeType, ...NO_PREVIEW, ...words };
    case 'video':
      return { video: content, mimetype: mimeType, ...NO_PREVIEW, ...words };
    case 'video_note':
      return { video: content, mimetype: mimeType, ptv: true, ...NO_PREVIEW };
    case 'audio':
      return { audio: content, mimetype: mimeType, seconds: 0 };
    case 'voice':
      // Phones play nothing else as spoken.
      return { audio: content, mimetype: 'audio/ogg; codecs=opus', ptt: true, seconds: 0 };
    case 'sticker':
    case 'document':
      return { document: content, mimetype: mimeType, fileName: name, ...words };
  }
}
