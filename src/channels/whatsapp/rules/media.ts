// What a WhatsApp message carries beside its words, and what is needed to fetch it: the key it is
// encrypted with and where on the media host it lies. Pure.

import type {
  Attachment,
  AttachmentContent,
  AttachmentKind,
} from '../../../kernel/message/attachment.ts';
import type { WhatsAppContent, WhatsAppFile } from './message.ts';

/** As WhatsApp derives keys from `mediaKey`: each type has its own. */
export type WhatsAppMediaType = 'image' | 'video' | 'audio' | 'document' | 'sticker';

/** A file on the media host; what the sender says of it and nobody has checked. */
export type WhatsAppMediaRef = {
  readonly type: WhatsAppMediaType;
  /** Base64. */
  readonly mediaKey: string;
  /** On the media host, begins with `/`. */
  readonly path: string;
  /** The host as the sender names it. */
  readonly host: string;
  /** The message it came with: by it the account's phone is asked for it again. */
  readonly message?: WhatsAppMessageRef;
};

export type WhatsAppMessageRef = {
  readonly remoteJid: string;
  readonly id: string;
  readonly fromMe: boolean;
  readonly participant?: string;
};

type Kind = { readonly kind: AttachmentKind; readonly type: WhatsAppMediaType };

const KINDS: Readonly<Record<string, Kind>> = {
  imageMessage: { kind: 'image', type: 'image' },
  videoMessage: { kind: 'video', type: 'video' },
  ptvMessage: { kind: 'video_note', type: 'video' },
  audioMessage: { kind: 'audio', type: 'audio' },
  documentMessage: { kind: 'document', type: 'document' },
  stickerMessage: { kind: 'sticker', type: 'sticker' },
};

const MEDIA_KEY_BYTES = 32;

export const isMediaKind = (kind: string): boolean => Object.hasOwn(KINDS, kind);

/** What an unwrapped message carries. */
export function attachmentsOf(content: WhatsAppContent): readonly Attachment[] {
  return Object.entries(KINDS).flatMap(([name, { kind, type }]) => {
    const file: WhatsAppFile | null | undefined = content[name as keyof WhatsAppFiles];
    if (file === undefined || file === null) return [];
    const isVoice = kind === 'audio' && file.ptt === true;
    return [attachment(file, isVoice ? 'voice' : kind, type)];
  });
}

/** The files of this message. */
export function filesOfMessage(
  attachments: readonly Attachment[],
  { remoteJid, id, fromMe, participant }: WhatsAppMessageRef,
): readonly Attachment[] {
  const message = { remoteJid, id, fromMe, ...(participant === undefined ? {} : { participant }) };
  return attachments.map((one) => {
    if (one.content.kind !== 'remote') return one;
    const ref: WhatsAppMediaRef = { ...JSON.parse(one.content.ref), message };
    return { ...one, content: { kind: 'remote', ref: JSON.stringify(ref) } };
  });
}

type WhatsAppFiles = Pick<
  WhatsAppContent,
  | 'imageMessage'
  | 'videoMessage'
  | 'ptvMessage'
  | 'audioMessage'
  | 'documentMessage'
  | 'stickerMessage'
>;

function attachment(file: WhatsAppFile, kind: AttachmentKind, type: WhatsAppMediaType): Attachment {
  const name = file.fileName || file.title;
  const sizeBytes = Number(file.fileLength ?? 0);
  const seconds = Number(file.seconds ?? 0);
  return {
    kind,
    ...(name ? { name: name.toWellFormed() } : {}),
    ...(file.mimetype ? { mimeType: file.mimetype.toWellFormed() } : {}),
    ...(sizeBytes > 0 && Number.isSafeInteger(sizeBytes) ? { sizeBytes } : {}),
    ...(seconds > 0 ? { durationMs: seconds * 1000 } : {}),
    content: contentOf(file, type),
  };
}

function contentOf(file: WhatsAppFile, type: WhatsAppMediaType): AttachmentContent {
  const { mediaKey, directPath } = file;
  const isWhole = mediaKey?.length === MEDIA_KEY_BYTES && directPath?.startsWith('/') === true;
  if (!isWhole || !mediaKey)
    return { kind: 'unread', reason: 'it came without its key or its place' };
  const ref: WhatsAppMediaRef = {
    type,
    mediaKey: btoa(String.fromCharCode(...mediaKey)),
    path: directPath,
    host: URL.parse(file.url ?? '')?.host ?? '',
  };
  return { kind: 'remote', ref: JSON.stringify(ref) };
}
