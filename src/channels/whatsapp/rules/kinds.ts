// Everything in a WhatsApp message that is not plain text, put into words, so that nothing a person
// sent is silently lost. What was written beside it (a caption) is its text.

import { headOf } from '../../../lib/text/cut.ts';
import { isMediaKind } from './media.ts';
import type { WhatsAppContent } from './message.ts';

export type Words = {
  /** What was sent, for the reader of the text. */
  readonly note?: string;
  /** What the person wrote. */
  readonly text?: string;
};

const MAX_FIELD_CHARS = 200;
const MAX_LISTED = 20;

/**
 * Signs between programs, changes of other messages, what is said again in another one. A protocol
 * message says something only where it holds the new text of an earlier one.
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
  readonly [Kind in keyof WhatsAppContent]?: (value: NonNullable<WhatsAppContent[Kind]>) => Words;
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
  eventMessage: ({ name, description }) => ({
    note: `[event: ${field(name)}]`,
    ...written(description),
  }),
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

/** One kind of a message in words; empty where it says nothing. */
export function wordsOfKind(kind: string, content: WhatsAppContent): Words {
  if (isSilentKind(kind)) return {};
  const words = isDescribed(kind) ? describe(kind, content) : {};
  if (words.note || words.text) return words;
  // Files come along as such, and an empty text says nothing.
  if (kind === 'conversation' || kind === 'extendedTextMessage' || isMediaKind(kind)) return {};
  return unopened(NAMES[kind] ?? `something else (${spoken(kind)})`);
}

function isDescribed(kind: string): kind is keyof WhatsAppContent {
  return Object.hasOwn(DESCRIBERS, kind);
}

function describe<Kind extends keyof WhatsAppContent>(kind: Kind, content: WhatsAppContent): Words {
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
  return headOf((text ?? '').replace(/\s+/g, ' ').trim(), MAX_FIELD_CHARS);
}

function point(place: NonNullable<WhatsAppContent['liveLocationMessage']>): string {
  return `${Number(place.degreesLatitude ?? 0)}, ${Number(place.degreesLongitude ?? 0)}`;
}

function contactNote(contact: NonNullable<WhatsAppContent['contactMessage']>): string {
  const card = (contact.vcard ?? '').split(/\r?\n/);
  const numbers = card.flatMap((line) => /^(?:item\d+\.)?TEL[^:]*:(.+)$/i.exec(line)?.[1] ?? []);
  const listed = numbers.slice(0, MAX_LISTED).map(field);
  return `[contact: ${[field(contact.displayName), ...listed].filter(Boolean).join(', ')}]`;
}

function pollWords(poll: NonNullable<WhatsAppContent['pollCreationMessage']>): Words {
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
