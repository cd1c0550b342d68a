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

/** What is said in a sound, once somebody has listened. */
export type Spoken =
  /** `language`: ISO 639 code, where it is known. */
  | { readonly kind: 'words'; readonly text: string; readonly language?: string }
  /** `reason` in words for people, without a full stop. */
  | { readonly kind: 'unheard'; readonly reason: string };

export type Attachment = {
  readonly kind: AttachmentKind;
  /** As the sender called it: shown, never trusted, never a path. */
  readonly name?: string;
  /** As the platform says; what it really is, is found out from the content. */
  readonly mimeType?: string;
  readonly sizeBytes?: number;
  readonly durationMs?: number;
  readonly content: AttachmentContent;
  /** Of a sound. */
  readonly spoken?: Spoken;
};

/** Sounds that are listened to. */
export const SOUND_KINDS: readonly AttachmentKind[] = ['voice', 'audio', 'video_note'];
/** What the person says into it themself. */
export const OWN_SPEECH_KINDS: readonly AttachmentKind[] = ['voice', 'video_note'];

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
