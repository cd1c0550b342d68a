// The content of a WhatsApp message: extracted from its containers (disappearing, view once, edited
// ...), with its quote and mentions, and what it does to an earlier message (edit, deletion,
// reaction).

import {
  type BinaryNode,
  decodeMessageNode,
  isJidNewsletter,
  isJidStatusBroadcast,
  proto,
  toNumber,
  type WASocket,
} from '@whiskeysockets/baileys';
import { emojiOf } from '../../kernel/message/message.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { saidIn } from '../inbound-message.ts';
import { attachmentsOf, isSilentKind, wordsOfKind } from './message.ts';
import { idOfPerson, isPerson, type PersonJid, parseJid } from './rules/jid.ts';

export type WhatsAppReading = NonNullable<ReturnType<typeof readWhatsApp>>;

/** Bounds the nesting of hostile messages; WhatsApp nests three containers at most. */
const MAX_DEPTH = 8;
/** A message has one kind, plus a few fields for clients. */
const MAX_KINDS = 8;
const MAX_NAMED = 50;
/** The mark by which the rest of the program recognises untrusted content. */
const PASSED_ON = '[forwarded]';
/** Kinds whose text is mostly written by somebody other than the sender. */
const UNTRUSTED_TEXT: ReadonlySet<string> = new Set([
  'buttonsMessage',
  'buttonsResponseMessage',
  'contactMessage',
  'contactsArrayMessage',
  'groupInviteMessage',
  'interactiveMessage',
  'interactiveResponseMessage',
  'listMessage',
  'listResponseMessage',
  'templateButtonReplyMessage',
  'templateMessage',
]);
/** Of a kind that the vendor's library does not know, only an empty message is left. */
const UNKNOWN_KIND = '[sent something of an unknown kind]';

/** Undefined without content of its own: a reaction, a vote, a signal between clients. */
export function readWhatsApp(message: proto.IMessage) {
  const { content, isEdit, isForwarded } = unwrap(message);
  const attachments = attachmentsOf(content);
  const said = textOf(content, isForwarded);
  if (said === undefined && attachments.length === 0) return undefined;
  // A forwarded recording is not the sender's own speech.
  const text = said ?? (isForwarded || isPassedOn(content) ? PASSED_ON : '');
  const context = contextOf(content);
  const mentioned = namedIn(context);
  return {
    text,
    /** Files that it carries. */
    attachments: attachments.length === 0 ? undefined : attachments,
    /** It replaces the text of an earlier message. */
    isEdit,
    /** It is part of an album, which comes as several messages. */
    isOfAlbum: albumOf(message) === undefined ? undefined : (true as const),
    quoted: quoteOf(context),
    /** Seconds until it disappears, if it does not stay. */
    timer: context?.expiration || undefined,
    /** The people it mentions. */
    mentioned: mentioned.length === 0 ? undefined : mentioned,
  };
}

const namedIn = (context: proto.IContextInfo | undefined): readonly PersonJid[] =>
  (context?.mentionedJid ?? []).slice(0, MAX_NAMED).map(parseJid).filter(isPerson);

function unwrap(message: proto.IMessage): {
  readonly content: proto.IMessage;
  readonly isEdit: boolean;
  readonly isForwarded: boolean;
} {
  let content = message;
  let isEdit = false;
  let isForwarded = false;
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    const inner = innerOf(content);
    if (inner === undefined) break;
    isEdit ||= present(content.editedMessage) || present(content.protocolMessage);
    isForwarded ||= present(content.botForwardedMessage);
    content = inner;
  }
  return { content, isEdit, isForwarded };
}

function innerOf(content: proto.IMessage): proto.IMessage | undefined {
  const edited = content.protocolMessage?.editedMessage;
  if (present(edited)) return edited;
  for (const value of Object.values(content)) {
    const inner = wrappedIn(value);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

/** Every container, including those of later versions, holds its content as `message`. */
function wrappedIn(value: unknown): proto.IMessage | undefined {
  if (!isObject(value) || !('message' in value)) return undefined;
  return isObject(value.message) ? value.message : undefined;
}

function textOf(content: proto.IMessage, isForwarded: boolean): string | undefined {
  const kinds = Object.entries(content).filter(([, value]) => present(value));
  if (kinds.length === 0) return UNKNOWN_KIND;
  const words = kinds.slice(0, MAX_KINDS).map(([kind]) => wordsOfKind(kind, content));
  const said = words.flatMap(({ note, text }) => [note, text]).filter((part) => part !== undefined);
  if (said.length === 0) return undefined;
  const text = withNamedPeople(said.join('\n'), namedIn(contextOf(content)));
  return isForwarded || isPassedOn(content) ? `${PASSED_ON}\n${text}` : text;
}

/** Not written by the sender: from another chat, a channel, a business or a bot. */
function isPassedOn(content: proto.IMessage): boolean {
  const context = contextOf(content);
  const kinds = Object.entries(content).filter(([, value]) => present(value));
  return (
    kinds.some(([kind]) => UNTRUSTED_TEXT.has(kind)) ||
    context?.isForwarded === true ||
    Number(context?.forwardingScore ?? 0) > 0 ||
    present(context?.forwardedNewsletterMessageInfo) ||
    present(context?.businessMessageForwardInfo) ||
    present(context?.forwardedAiBotMessageInfo)
  );
}

/** WhatsApp writes `@` and the digits of an address: here in the common spelling of ids. */
function withNamedPeople(text: string, people: readonly PersonJid[]): string {
  if (people.length === 0) return text;
  const ids = new Map(people.map((person) => [person.user, idOfPerson(person)]));
  return text.replace(/(?<![\w.])@(\d{1,20})(?!\d)/g, (whole, digits: string) => {
    const id = ids.get(digits);
    return id === undefined ? whole : `@${id}`;
  });
}

function quoteOf(context: proto.IContextInfo | undefined) {
  const id = context?.stanzaId;
  if (!id) return undefined;
  const { participant, quotedMessage } = context;
  return {
    id,
    /** As received; missing if the quoted message has no author. */
    authorJid: participant || undefined,
    /** Missing if the quoted message is empty or was not included. */
    text: present(quotedMessage) ? quotedText(quotedMessage) : undefined,
  };
}

/** The id of the album that a message is part of. */
export function albumOf(message: proto.IMessage): string | undefined {
  return albumIn(message) ?? albumIn(unwrap(message).content);
}

const albumIn = ({ messageContextInfo }: proto.IMessage) => {
  const parent = messageContextInfo?.messageAssociation?.parentMessageKey;
  return present(parent) ? (parent?.id ?? '') : undefined;
};

/** Files of a quote are not fetched. */
const NAMED = { kind: 'remote', ref: '' } as const;

/** The quoted content, with its files as text. */
function quotedText(message: proto.IMessage): string | undefined {
  const { content, isForwarded } = unwrap(message);
  const attachments = attachmentsOf(content).map((one) => ({ ...one, content: NAMED }));
  return saidIn(textOf(content, isForwarded), attachments);
}

function contextOf(content: proto.IMessage): proto.IContextInfo | undefined {
  for (const value of Object.values(content)) {
    if (!isObject(value) || !('contextInfo' in value)) continue;
    if (isObject(value.contextInfo)) return value.contextInfo;
  }
  return undefined;
}

function present<T>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

// What a WhatsApp message does to an earlier one: it changes it, deletes it, or is a reaction to
// it. It names the earlier message by id alone; the caller, which knows both senders, checks them.

export type WhatsAppSign =
  | { readonly kind: 'edited' | 'withdrawn'; readonly id: string }
  /** Without an emoji the reaction was removed. */
  | { readonly kind: 'reacted'; readonly id: string; readonly emoji?: string };

/** `ProtocolMessage.Type` of WhatsApp's protocol. */
const REVOKE = 0;

/** Undefined for a message of its own, and for a reaction that is no emoji. */
export function signOf(message: proto.IMessage): WhatsAppSign | undefined {
  let content: proto.IMessage | undefined = message;
  for (let depth = 0; depth < MAX_DEPTH && content !== undefined; depth += 1) {
    const sign = changeIn(content) ?? reactionIn(content);
    if (sign !== undefined) return sign;
    content = innerOf(content);
  }
  return undefined;
}

function changeIn({ protocolMessage }: proto.IMessage): WhatsAppSign | undefined {
  const id = protocolMessage?.key?.id;
  if (!id) return undefined;
  if (protocolMessage?.editedMessage) return { kind: 'edited', id };
  return Number(protocolMessage?.type ?? REVOKE) === REVOKE ? { kind: 'withdrawn', id } : undefined;
}

function reactionIn({ reactionMessage }: proto.IMessage): WhatsAppSign | undefined {
  const id = reactionMessage?.key?.id;
  if (!id) return undefined;
  if (!reactionMessage?.text) return { kind: 'reacted', id };
  const emoji = emojiOf(reactionMessage.text);
  return emoji === undefined ? undefined : { kind: 'reacted', id, emoji };
}

// The unencrypted part of a message: its author, chat and time, read from the raw stanza.

export type MessageKey = {
  readonly remoteJid: string;
  /** The chat's other address (phone number for a LID and the reverse), if the server sent it. */
  readonly remoteJidAlt?: string | undefined;
  readonly fromMe: boolean;
  readonly id: string;
  readonly participant?: string | undefined;
  readonly participantAlt?: string | undefined;
};

export type Envelope = {
  readonly key: MessageKey;
  /** The server's time, epoch milliseconds; undefined if it gave none. */
  readonly sentAt: number | undefined;
  readonly pushName: string | undefined;
};

export type OwnIds = { readonly id: string; readonly lid?: string | undefined };

const SIGNAL_TYPES = new Set(['pkmsg', 'msg', 'skmsg']);
/** Baileys ignores a message whose first part is of this type. */
const LEFT_ALONE = 'msmsg';

/** The ciphertexts that Baileys decrypts, as the very buffers it passes on. */
export function ciphertextsOf({ content }: BinaryNode): readonly Uint8Array[] {
  const parts = Array.isArray(content) ? content.filter(({ tag }) => tag === 'enc') : [];
  if (parts[0]?.attrs['type'] === LEFT_ALONE) return [];
  return parts.flatMap(({ attrs, content }) =>
    content instanceof Uint8Array && SIGNAL_TYPES.has(attrs['type'] ?? '') ? [content] : [],
  );
}

/** Undefined for a stanza that Baileys refuses as well. */
export function envelopeOf(stanza: BinaryNode, own: OwnIds): Envelope | undefined {
  const { attrs } = stanza;
  const key = keyOf(stanza, own);
  if (key === undefined) return undefined;
  const seconds = Number(attrs['t']);
  return {
    key,
    sentAt: seconds > 0 ? seconds * 1000 : undefined,
    pushName: attrs['notify'],
  };
}

/** Public posts are not addressed to this account. */
export function isPublicPost({ key: { remoteJid } }: Pick<Envelope, 'key'>): boolean {
  return isJidStatusBroadcast(remoteJid) || isJidNewsletter(remoteJid) === true;
}

function keyOf(stanza: BinaryNode, own: OwnIds): MessageKey | undefined {
  try {
    const { key } = decodeMessageNode(stanza, own.id, own.lid ?? '').fullMessage;
    const { remoteJid, id, participant, participantAlt } = key;
    if (!remoteJid || !id) return undefined;
    const fromMe = key.fromMe === true;
    // For messages of the owner Baileys takes the owner's other address for the chat's.
    const alt = fromMe ? recipientAlt(stanza) : key.remoteJidAlt;
    return {
      ...{ remoteJid, remoteJidAlt: alt || undefined, fromMe, id },
      participant: participant || undefined,
      participantAlt: participantAlt || undefined,
    };
  } catch {
    return undefined;
  }
}

function recipientAlt({ attrs }: BinaryNode): string | undefined {
  const isLid = attrs['recipient']?.endsWith('@lid') === true;
  return isLid
    ? (attrs['recipient_pn'] ?? attrs['peer_recipient_pn'])
    : (attrs['recipient_lid'] ?? attrs['peer_recipient_lid']);
}

// Distinguishes what a person said or did from what clients exchange: keys, votes, history.

/** Messages from the sender's own other device carry the content one level deeper. */
export function messageOf(message: proto.IMessage): proto.IMessage {
  return message.deviceSentMessage?.message ?? message;
}

/** An unknown kind counts as content: the agent answers that it could not be read. */
export function isUserContent(message: proto.IMessage, wrappers = 0): boolean {
  const parts = Object.entries(message).filter(([, value]) => value != null);
  if (parts.length === 0) return true;
  return parts.some(([kind, value]) => {
    if (kind === 'protocolMessage' && message.protocolMessage?.editedMessage != null) return true;
    if (kind === 'protocolMessage' || kind === 'reactionMessage') {
      return signOf(message) !== undefined;
    }
    if (isSilentKind(kind)) return false;
    const wrapped = wrappedIn(value);
    return wrapped === undefined || (wrappers < MAX_DEPTH && isUserContent(wrapped, wrappers + 1));
  });
}

// For every unreadable message the library asks the account's own phone as well as the sender. Each
// request is a message of ours: a flood of unreadable messages must not become a flood of requests
// (case W05). Senders are still asked for all of them.

const WINDOW_MS = 60_000;
const MAX_PER_WINDOW = 20;

export function limitPhoneRequests(
  { messageRetryManager: manager }: Pick<WASocket, 'messageRetryManager'>,
  clock: Clock,
): void {
  if (manager === null) return;
  const schedule = manager.schedulePhoneRequest.bind(manager);
  let windowAt = clock.monotonic();
  let used = 0;
  manager.schedulePhoneRequest = (...request) => {
    const now = clock.monotonic();
    if (now - windowAt >= WINDOW_MS) {
      windowAt = now;
      used = 0;
    }
    used += 1;
    if (used <= MAX_PER_WINDOW) schedule(...request);
  };
}

/**
 * The library keeps the last 512 messages in memory, for phones that request one again: each with
 * the whole of its connection's work for it. What was sent is in rows of ours, and nobody requests
 * from us what we received. Left are its requests to the account's own phone.
 */
export function keepRequestsOnly({
  messageRetryManager: manager,
}: Pick<WASocket, 'messageRetryManager'>): void {
  if (manager === null) return;
  const add = manager.addRecentMessage.bind(manager);
  manager.addRecentMessage = (to, id, message) => {
    if (message.protocolMessage?.peerDataOperationRequestMessage) add(to, id, message);
  };
}

// Messages that this device could not decrypt, sent again by the phone inside one of its own.

type Content = {
  readonly envelope: Envelope;
  readonly message: proto.IMessage;
  readonly bytes: Uint8Array;
};

const { Type } = proto.Message.ProtocolMessage;

/** Undefined for every other message. Only messages of the account itself are trusted. */
export function resentByPhone(
  carrier: Envelope,
  message: proto.IMessage,
): readonly Content[] | undefined {
  const { type, peerDataOperationRequestResponseMessage: answer } = message.protocolMessage ?? {};
  const isAnswer = type === Type.PEER_DATA_OPERATION_REQUEST_RESPONSE_MESSAGE;
  if (!carrier.key.fromMe || !isAnswer) return undefined;
  return (answer?.peerDataOperationResult ?? []).flatMap((result) => {
    const bytes = result.placeholderMessageResendResponse?.webMessageInfoBytes;
    const content = bytes ? contentOf(bytes) : undefined;
    return content === undefined ? [] : [content];
  });
}

function contentOf(info: Uint8Array): Content | undefined {
  try {
    const { key, message, messageTimestamp, pushName } = proto.WebMessageInfo.decode(info);
    if (!key?.id || !key.remoteJid || !message) return undefined;
    const seconds = toNumber(messageTimestamp);
    const { remoteJid, id, participant } = key;
    const envelope: Envelope = {
      key: { remoteJid, fromMe: key.fromMe === true, id, participant: participant || undefined },
      sentAt: seconds > 0 ? seconds * 1000 : undefined,
      pushName: pushName ?? undefined,
    };
    return { envelope, message, bytes: proto.Message.encode(message).finish() };
  } catch {
    return undefined;
  }
}
