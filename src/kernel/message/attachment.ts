// The files of a message. Content is identified by its hash and read from the media store; what a
// platform has not delivered yet is identified by the channel's own reference.

import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { MediaId } from './ids.ts';
import { neutralLines } from './untrusted.ts';

export const ATTACHMENT_KINDS = [
  'image',
  'video',
  'video_note',
  'audio',
  'voice',
  'sticker',
  'document',
] as const;
/** `voice` is recorded on the phone, `audio` a file; `video_note` is Telegram's round video. */
export type AttachmentKind = (typeof ATTACHMENT_KINDS)[number];

export type AttachmentContent =
  | { readonly kind: 'stored'; readonly media: MediaId }
  /** Fetched by the channel that wrote `ref`; nothing else reads it. */
  | { readonly kind: 'remote'; readonly ref: string }
  /** Not read; the person and the model get the reason. */
  | { readonly kind: 'unread'; readonly reason: string };

/** The transcript of audio, once there is one. */
export type Spoken =
  /** `language`: ISO 639 code, if known. */
  | { readonly kind: 'words'; readonly text: string; readonly language?: string }
  /** `reason` as text for people, without a full stop. */
  | { readonly kind: 'unheard'; readonly reason: string };

export type Attachment = {
  readonly kind: AttachmentKind;
  /** The sender's name for it: shown, never trusted, never a path. */
  readonly name?: string | undefined;
  /** From the platform; the real type is detected from the content. */
  readonly mimeType?: string | undefined;
  readonly sizeBytes?: number | undefined;
  readonly durationMs?: number | undefined;
  readonly content: AttachmentContent;
  /** Of audio. */
  readonly spoken?: Spoken;
};

/** Kinds that are transcribed. */
const SOUND_KINDS: readonly AttachmentKind[] = ['voice', 'audio', 'video_note'];
/** Kinds in which the sender themself speaks. */
export const OWN_SPEECH_KINDS: readonly AttachmentKind[] = ['voice', 'video_note'];

/** A file of an answer; its content is in the media store before the answer is queued. */
export type OutboundAttachment = {
  readonly kind: AttachmentKind;
  readonly media: MediaId;
  /** File name without folders. */
  readonly name: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly caption?: string;
};

// Attachments as text: for the model, for group talk, for an owner who reads an unknown sender's
// messages. Names are the sender's, so they are escaped and cannot imitate a line of the program.

const MAX_NAME_CHARS = 100;

const KIND_WORDS: Readonly<Record<AttachmentKind, string>> = {
  image: 'photo',
  video: 'video',
  video_note: t`video message`,
  audio: t`audio file`,
  voice: t`voice message`,
  sticker: 'sticker',
  document: 'file',
};

/**
 * One line per attachment: `[file "report.pdf" (1.2 MB)]`, or why it could not be read; for a voice
 * message its transcript: `[voice message, 0:12, de]: See you at noon.`
 */
export function attachmentLines(attachments: readonly Attachment[] = []): readonly string[] {
  return attachments.map((attachment) => {
    const { content, spoken } = attachment;
    const what = attachmentTitle(attachment);
    if (spoken?.kind === 'words') return `${spokenTitle(attachment, spoken)}: ${spoken.text}`;
    if (spoken?.kind === 'unheard') return `[${what}: not transcribed, ${plain(spoken.reason)}]`;
    return content.kind === 'unread'
      ? `[${what}: could not be read, ${plain(content.reason)}]`
      : `[${what}]`;
  });
}

/** The text, preceded by the lines of its attachments. */
export function textWithAttachments(message: {
  readonly text: string;
  readonly attachments?: readonly Attachment[] | undefined;
}): string {
  const lines = attachmentLines(message.attachments);
  return lines.length === 0
    ? message.text
    : [...lines, message.text].filter((part) => part !== '').join('\n');
}

function spokenTitle({ kind, durationMs }: Attachment, { language }: { language?: string }) {
  const details = [
    ...(durationMs === undefined ? [] : [durationWords(durationMs)]),
    ...(language === undefined ? [] : [language]),
  ];
  return `[${[KIND_WORDS[kind], ...details].join(', ')}]`;
}

/** `file "report.pdf" (1.2 MB)` */
export function attachmentTitle({ kind, name, sizeBytes, durationMs }: Attachment): string {
  const shown = headOf(plain(name ?? ''), MAX_NAME_CHARS).trim();
  const details = [
    ...(durationMs === undefined ? [] : [durationWords(durationMs)]),
    ...(sizeBytes === undefined ? [] : [sizeWords(sizeBytes)]),
  ];
  const title = shown === '' ? KIND_WORDS[kind] : `${KIND_WORDS[kind]} "${shown}"`;
  return details.length === 0 ? title : `${title} (${details.join(', ')})`;
}

/** `999 bytes`, `1.2 kB`, `20 MB` */
export function sizeWords(bytes: number): string {
  if (bytes < 1000) return t`${bytes} bytes`;
  const [amount, unit] =
    bytes < 999_500
      ? [bytes / 1000, 'kB']
      : bytes < 999_500_000
        ? [bytes / 1e6, 'MB']
        : [bytes / 1e9, 'GB'];
  return `${amount < 10 ? Math.round(amount * 10) / 10 : Math.round(amount)} ${unit}`;
}

function durationWords(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

const plain = (text: string) =>
  neutralLines(text)
    .join(' ')
    .replace(/[[\]"\s]+/g, ' ')
    .trim();

// Contents of the media store as a transcript names them: attachments of a message, images from a
// tool. Never their bytes.

export type AttachedMedia = {
  readonly media: MediaId;
  readonly kind: AttachmentKind;
  /** Detected from the content, not the sender's value. */
  readonly mimeType: string;
  /** The sender's name for it: shown, never trusted, never a path. */
  readonly name?: string;
};

const SHORT_ID_CHARS = 8;

export const isImage = ({ mimeType }: AttachedMedia) => mimeType.startsWith('image/');

/** The id by which a model names it; valid only in its own conversation. */
export const shortIdOf = ({ media }: Pick<AttachedMedia, 'media'>) =>
  media.slice(0, SHORT_ID_CHARS);

/** `photo "beach.jpg", id 0a1b2c3d` */
export function attachedTitle(attached: AttachedMedia): string {
  const { kind, name, media } = attached;
  const content = { kind: 'stored', media } as const;
  const title = attachmentTitle({ kind, content, ...(name === undefined ? {} : { name }) });
  return t`${title}, id ${shortIdOf(attached)}`;
}

/**
 * The content that a model means by a name or the start of an id; the newest of several. Finds only
 * what the conversation itself contains.
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

/** Audio without a transcript or a reason yet. */
export const isUnheard = ({ kind, content, spoken }: Attachment): boolean =>
  content.kind === 'stored' && spoken === undefined && SOUND_KINDS.includes(kind);

/** Why the person's own speech in it is not known; undefined if it is, or if there is none. */
export function missedReason({ kind, content, spoken }: Attachment): string | undefined {
  if (!OWN_SPEECH_KINDS.includes(kind)) return undefined;
  if (spoken?.kind === 'unheard') return spoken.reason;
  return content.kind === 'unread' ? content.reason : undefined;
}
