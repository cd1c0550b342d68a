// The library asks the account's own phone for every message it could not read, besides its sender.
// Each of these is a message of ours: a flood of unreadable ones must not become a flood by us
// (case W05). Senders are still asked for all of them.

import { proto, toNumber, type WASocket } from '@whiskeysockets/baileys';
import type { Clock } from '../../lib/time/clock.ts';
import type { Envelope } from './envelope.ts';

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
