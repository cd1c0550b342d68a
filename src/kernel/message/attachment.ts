// What comes and goes with a message besides its text. Content is named by its hash and read from
// the media store; what a platform has not handed over yet is named by the channel's own reference.

import { headOf } from '../../lib/text/cut.ts';
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

// What came with a message, in words: for the model, for group talk, for an owner who looks at what
// a stranger sent. Names are the sender's own, so nothing in them can look like a line of ours.

const MAX_NAME_CHARS = 100;

const KIND_WORDS: Readonly<Record<AttachmentKind, string>> = {
  image: 'photo',
  video: 'video',
  video_note: 'video message',
  audio: 'audio file',
  voice: 'voice message',
  sticker: 'sticker',
  document: 'file',
};

/**
 * One line per attachment: `[file "report.pdf" (1.2 MB)]`, or why it could not be read; of a voice
 * message what is said in it: `[voice message, 0:12, de]: See you at noon.`
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

/** The text with what came beside it in front. */
export function textWithAttachments(message: {
  readonly text: string;
  readonly attachments?: readonly Attachment[];
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
  if (bytes < 1000) return `${bytes} bytes`;
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

// Contents of the media store as a transcript names them: what came with a message, what a tool showed.
// Bytes are never among them.

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

/** A sound that nobody has listened to yet. */
export const isUnheard = ({ kind, content, spoken }: Attachment): boolean =>
  content.kind === 'stored' && spoken === undefined && SOUND_KINDS.includes(kind);

/** Why the person's own words in it are not known; undefined where they are, or where there are none. */
export function missedReason({ kind, content, spoken }: Attachment): string | undefined {
  if (!OWN_SPEECH_KINDS.includes(kind)) return undefined;
  if (spoken?.kind === 'unheard') return spoken.reason;
  return content.kind === 'unread' ? content.reason : undefined;
}
