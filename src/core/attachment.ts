// What comes and goes with a message besides its text. Content is named by its hash and read from
// the media store; what a platform has not handed over yet is named by the channel's own reference.

import type { MediaId } from './ids.ts';

export const ATTACHMENT_KINDS = [
  'image',
  'video',
  'video_note',
  'audio',
  'voice',
  'sticker',
  'document',
] as const;
/** `voice` is spoken into the phone, `audio` a recording; `video_note` is Telegram's round one. */
export type AttachmentKind = (typeof ATTACHMENT_KINDS)[number];

export type AttachmentContent =
  | { readonly kind: 'stored'; readonly media: MediaId }
  /** Fetched by the channel that wrote `ref`; nobody else reads it. */
  | { readonly kind: 'remote'; readonly ref: string }
  /** Not read, and the person and the model are told why. */
  | { readonly kind: 'unread'; readonly reason: string };

export type Attachment = {
  readonly kind: AttachmentKind;
  /** As the sender called it: shown, never trusted, never a path. */
  readonly name?: string;
  /** As the platform says; what it really is, is found out from the content. */
  readonly mimeType?: string;
  readonly sizeBytes?: number;
  readonly durationMs?: number;
  readonly content: AttachmentContent;
};

/** What an answer carries; its content is in the media store before the answer is queued. */
export type OutboundAttachment = {
  readonly kind: AttachmentKind;
  readonly media: MediaId;
  /** File name without folders. */
  readonly name: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly caption?: string;
};
