// The unencrypted part of a message: its author, chat and time, read from the raw stanza. Requests to the
// account's own phone for unreadable messages are limited by it.

import {
  type BinaryNode,
  decodeMessageNode,
  isJidNewsletter,
  isJidStatusBroadcast,
  proto,
  toNumber,
  type WASocket,
} from '@whiskeysockets/baileys';
import type { Clock } from '../../lib/time/clock.ts';
import { signOf } from './content.ts';
import { isSilentKind } from './message.ts';

export type MessageKey = {
  readonly remoteJid: string;
  /** The chat's other address (phone number for a LID and the reverse), where the server sent it. */
  readonly remoteJidAlt?: string;
  readonly fromMe: boolean;
  readonly id: string;
  readonly participant?: string;
  readonly participantAlt?: string;
};

export type Envelope = {
  readonly key: MessageKey;
  /** By the server, epoch milliseconds; undefined where it said none. */
  readonly sentAt: number | undefined;
  readonly pushName: string | undefined;
};

export type OwnIds = { readonly id: string; readonly lid?: string | undefined };

const SIGNAL_TYPES = new Set(['pkmsg', 'msg', 'skmsg']);
/** Baileys leaves a message alone whose first part is of this type. */
const LEFT_ALONE = 'msmsg';

/** The ciphertexts Baileys will have decrypted, as the very buffers it passes on. */
export function ciphertextsOf({ content }: BinaryNode): readonly Uint8Array[] {
  const parts = Array.isArray(content) ? content.filter(({ tag }) => tag === 'enc') : [];
  if (parts[0]?.attrs['type'] === LEFT_ALONE) return [];
  return parts.flatMap(({ attrs, content }) =>
    content instanceof Uint8Array && SIGNAL_TYPES.has(attrs['type'] ?? '') ? [content] : [],
  );
}

/** undefined for a stanza that Baileys refuses as well. */
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

/** Posts to everybody are not written to us. */
export function isPublicPost({ key: { remoteJid } }: Pick<Envelope, 'key'>): boolean {
  return isJidStatusBroadcast(remoteJid) || isJidNewsletter(remoteJid) === true;
}

function keyOf(stanza: BinaryNode, own: OwnIds): MessageKey | undefined {
  try {
    const { key } = decodeMessageNode(stanza, own.id, own.lid ?? '').fullMessage;
    const { remoteJid, id, participant, participantAlt } = key;
    if (!remoteJid || !id) return undefined;
    const fromMe = key.fromMe === true;
    // For what the owner wrote Baileys takes the owner's other address for the chat's.
    const alt = fromMe ? recipientAlt(stanza) : key.remoteJidAlt;
    return {
      remoteJid,
      ...(alt ? { remoteJidAlt: alt } : {}),
      fromMe,
      id,
      ...(participant ? { participant } : {}),
      ...(participantAlt ? { participantAlt } : {}),
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

// Tells what a person said or did from what clients tell each other: keys, votes, history.

/** Ephemeral, view once, with caption, edited: WhatsApp nests three at most. */
const MAX_WRAPPERS = 8;

/** What the sender's own other device sent carries the message one level deeper. */
export function messageOf(message: proto.IMessage): proto.IMessage {
  return message.deviceSentMessage?.message ?? message;
}

/**
 * A message of a kind this version does not know counts as content: it is for whoever answers to say
 * that it could not be read.
 */
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
    return (
      wrapped === undefined || (wrappers < MAX_WRAPPERS && isUserContent(wrapped, wrappers + 1))
    );
  });
}

function wrappedIn(value: unknown): proto.IMessage | undefined {
  const isWrapper = typeof value === 'object' && value !== null && 'message' in value;
  return isWrapper && typeof value.message === 'object' ? (value.message ?? undefined) : undefined;
}

// The library asks the account's own phone for every message it could not read, besides its sender.
// Each of these is a message of ours: a flood of unreadable ones must not become a flood by us
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

// Messages that our device could not decrypt and that the account's phone sent again, inside a
// message of its own.

type Content = {
  readonly envelope: Envelope;
  readonly message: proto.IMessage;
  readonly bytes: Uint8Array;
};

const { Type } = proto.Message.ProtocolMessage;

/** undefined for every other message. Only what the account itself sent is believed. */
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
    const envelope: Envelope = {
      key: {
        remoteJid: key.remoteJid,
        fromMe: key.fromMe === true,
        id: key.id,
        ...(key.participant ? { participant: key.participant } : {}),
      },
      sentAt: seconds > 0 ? seconds * 1000 : undefined,
      pushName: pushName ?? undefined,
    };
    return { envelope, message, bytes: proto.Message.encode(message).finish() };
  } catch {
    return undefined;
  }
}
