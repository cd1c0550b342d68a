// What came with a message, in words: for the model, for group talk, for an owner who looks at what
// a stranger sent. Names are the sender's own, so nothing in them can look like a line of ours.

import type { Attachment, AttachmentKind } from './attachment.ts';
import { headOf } from './cut.ts';
import { neutralLines } from './untrusted.ts';

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
    if (spoken?.kind === 'unheard') return `[${what}: not listened to, ${plain(spoken.reason)}]`;
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
