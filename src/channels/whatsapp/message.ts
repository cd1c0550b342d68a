// The parts of a WhatsApp message: its files, with what is needed to fetch them, and a text for
// every kind that is not plain text, so that no message is silently lost. Pure.

import type { proto } from '@whiskeysockets/baileys';
import type {
  Attachment,
  AttachmentContent,
  AttachmentKind,
} from '../../kernel/message/attachment.ts';
import { headOf, oneLine } from '../../lib/text/cut.ts';

/** As WhatsApp derives keys from `mediaKey`: each type has its own. */
type WhatsAppMediaType = 'image' | 'video' | 'audio' | 'document' | 'sticker';

/** A file on the media host; unverified data from the sender. */
export type WhatsAppMediaRef = {
  readonly type: WhatsAppMediaType;
  /** Base64. */
  readonly mediaKey: string;
  /** On the media host, begins with `/`. */
  readonly path: string;
  /** The host as the sender names it. */
  readonly host: string;
  /** The message that carries it, by which the account's phone is asked for it again. */
  readonly message?: WhatsAppMessageRef;
};

type WhatsAppMessageRef = {
  readonly remoteJid: string;
  readonly id: string;
  readonly fromMe: boolean;
  readonly participant?: string | undefined;
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

const isMediaKind = (kind: string): boolean => Object.hasOwn(KINDS, kind);

/** The fields that every kind of file has, and those of single kinds. */
type FileMessage = Omit<proto.Message.IVideoMessage, 'contextInfo'> &
  Pick<proto.Message.IDocumentMessage, 'fileName' | 'title'> &
  Pick<proto.Message.IAudioMessage, 'ptt'>;

/** The files of a message without its containers. */
export function attachmentsOf(content: proto.IMessage): readonly Attachment[] {
  return Object.entries(KINDS).flatMap(([name, { kind, type }]) => {
    const file = content[name as 'videoMessage'] as FileMessage | null | undefined;
    if (file === undefined || file === null) return [];
    const isVoice = kind === 'audio' && file.ptt === true;
    return [attachment(file, isVoice ? 'voice' : kind, type)];
  });
}

/** The files, each with the message it came in. */
export function filesOfMessage(
  attachments: readonly Attachment[],
  { remoteJid, id, fromMe, participant }: WhatsAppMessageRef,
): readonly Attachment[] {
  const message = { remoteJid, id, fromMe, participant };
  return attachments.map((one) => {
    if (one.content.kind !== 'remote') return one;
    const ref: WhatsAppMediaRef = { ...JSON.parse(one.content.ref), message };
    return { ...one, content: { kind: 'remote', ref: JSON.stringify(ref) } };
  });
}

function attachment(file: FileMessage, kind: AttachmentKind, type: WhatsAppMediaType): Attachment {
  const name = file.fileName || file.title;
  const sizeBytes = Number(file.fileLength ?? 0);
  const seconds = Number(file.seconds ?? 0);
  return {
    kind,
    name: name ? name.toWellFormed() : undefined,
    mimeType: file.mimetype ? file.mimetype.toWellFormed() : undefined,
    sizeBytes: sizeBytes > 0 && Number.isSafeInteger(sizeBytes) ? sizeBytes : undefined,
    durationMs: seconds > 0 ? seconds * 1000 : undefined,
    content: contentOf(file, type),
  };
}

function contentOf(file: FileMessage, type: WhatsAppMediaType): AttachmentContent {
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

export type Words = {
  /** A description of what was sent. */
  readonly note?: string;
  /** What the person wrote. */
  readonly text?: string;
};

const MAX_FIELD_CHARS = 200;
const MAX_LISTED = 20;

/**
 * Signals between clients, changes of other messages, and content repeated in another message. A
 * protocol message has content only if it holds the new text of an earlier one.
 */
const SILENT: ReadonlySet<string> = new Set([
  'albumMessage',
  'bcallMessage',
  'call',
  'callLogMesssage',
  'chat',
  'encCommentMessage',
  'encEventResponseMessage',
  'encReactionMessage',
  'fastRatchetKeySenderKeyDistributionMessage',
  'keepInChatMessage',
  'messageContextInfo',
  'messageHistoryBundle',
  'messageHistoryNotice',
  'pinInChatMessage',
  'placeholderMessage',
  'pollResultSnapshotMessage',
  'pollResultSnapshotMessageV3',
  'pollUpdateMessage',
  'protocolMessage',
  'reactionMessage',
  'scheduledCallEditMessage',
  'secretEncryptedMessage',
  'senderKeyDistributionMessage',
  'statusNotificationMessage',
  'stickerSyncRmrMessage',
]);

export const isSilentKind = (kind: string) => SILENT.has(kind);

const NAMES: Readonly<Record<string, string>> = {
  scheduledCallCreationMessage: 'a planned call',
};

type Describers = {
  readonly [Kind in keyof proto.IMessage]?: (value: NonNullable<proto.IMessage[Kind]>) => Words;
};

const DESCRIBERS: Describers = {
  conversation: (text) => written(text),
  extendedTextMessage: ({ text }) => written(text),
  imageMessage: ({ caption }) => written(caption),
  videoMessage: ({ caption }) => written(caption),
  ptvMessage: ({ caption }) => written(caption),
  documentMessage: ({ caption }) => written(caption),
  locationMessage: (place) => {
    const name = [field(place.name), field(place.address)].filter(Boolean).join(', ');
    const note = name === '' ? `[location: ${point(place)}]` : `[place: ${name} (${point(place)})]`;
    return { note, ...written(place.comment) };
  },
  liveLocationMessage: (place) => ({
    note: `[live location: ${point(place)}]`,
    ...written(place.caption),
  }),
  contactMessage: (contact) => ({ note: contactNote(contact) }),
  contactsArrayMessage: ({ contacts }) => ({
    note: (contacts ?? []).slice(0, MAX_LISTED).map(contactNote).join('\n'),
  }),
  pollCreationMessage: (poll) => pollWords(poll),
  pollCreationMessageV2: (poll) => pollWords(poll),
  pollCreationMessageV3: (poll) => pollWords(poll),
  pollCreationMessageV5: (poll) => pollWords(poll),
  eventMessage: ({ name, description, startTime, location }) => {
    const where = [location?.name, location?.address];
    const about = [name, dateOf(Number(startTime ?? 0)), ...where].map(field).filter(Boolean);
    return { note: `[event: ${about.join(', ')}]`, ...written(description) };
  },
  groupInviteMessage: ({ groupName, caption }) => ({
    note: `[invitation to the group "${field(groupName)}"]`,
    ...written(caption),
  }),
  buttonsResponseMessage: (reply) => written(reply.selectedDisplayText || reply.selectedButtonId),
  templateButtonReplyMessage: (reply) => written(reply.selectedDisplayText || reply.selectedId),
  listResponseMessage: ({ title, description }) => written(lines(title, description)),
  interactiveResponseMessage: ({ body }) => written(body?.text),
  buttonsMessage: ({ contentText, footerText }) => written(lines(contentText, footerText)),
  listMessage: ({ title, description }) => written(lines(title, description)),
  interactiveMessage: ({ body }) => written(body?.text),
  templateMessage: ({ hydratedTemplate }) => written(hydratedTemplate?.hydratedContentText),
};

/** The text of one kind of message; empty if it has no content. */
export function wordsOfKind(kind: string, content: proto.IMessage): Words {
  if (isSilentKind(kind)) return {};
  const words = isDescribed(kind) ? describe(kind, content) : {};
  if (words.note || words.text) return words;
  // Files become attachments, and an empty text has no content.
  if (kind === 'conversation' || kind === 'extendedTextMessage' || isMediaKind(kind)) return {};
  return unopened(NAMES[kind] ?? `something else (${spoken(kind)})`);
}

function isDescribed(kind: string): kind is keyof proto.IMessage {
  return Object.hasOwn(DESCRIBERS, kind);
}

function describe<Kind extends keyof proto.IMessage>(kind: Kind, content: proto.IMessage): Words {
  const value = content[kind];
  const describer = DESCRIBERS[kind];
  return value === undefined || value === null || describer === undefined ? {} : describer(value);
}

const unopened = (name: string): Words => ({
  note: `[sent ${name}, which cannot be opened here yet]`,
});

function written(text: string | null | undefined): Words {
  return text ? { text: text.toWellFormed() } : {};
}

const lines = (...texts: readonly (string | null | undefined)[]) =>
  texts.filter(Boolean).join('\n');

/** A short text for one line. */
function field(text: string | null | undefined): string {
  return headOf(oneLine(text ?? ''), MAX_FIELD_CHARS);
}

/** Empty if none is given. */
function dateOf(seconds: number): string {
  return seconds > 0 && seconds < 8e12 ? new Date(seconds * 1000).toISOString() : '';
}

function point(place: proto.Message.ILiveLocationMessage): string {
  return `${Number(place.degreesLatitude ?? 0)}, ${Number(place.degreesLongitude ?? 0)}`;
}

function contactNote(contact: proto.Message.IContactMessage): string {
  const card = (contact.vcard ?? '').split(/\r?\n/);
  const numbers = card.flatMap((line) => /^(?:item\d+\.)?TEL[^:]*:(.+)$/i.exec(line)?.[1] ?? []);
  const listed = numbers.slice(0, MAX_LISTED).map(field);
  return `[contact: ${[field(contact.displayName), ...listed].filter(Boolean).join(', ')}]`;
}

function pollWords(poll: proto.Message.IPollCreationMessage): Words {
  const options = (poll.options ?? []).map(({ optionName }) => field(optionName)).filter(Boolean);
  return {
    note: `[poll: ${field(poll.name)}; options: ${options.slice(0, MAX_LISTED).join(' / ')}]`,
  };
}

/** `stickerPackMessage` -> `sticker pack`. */
function spoken(kind: string): string {
  const words = kind.replace(/Message(V\d+)?$/, '').replace(/[A-Z]/g, (letter) => ` ${letter}`);
  return words.toLowerCase().trim().slice(0, MAX_FIELD_CHARS);
}
