// Messages that our device could not decrypt and that the account's phone sent again, inside a
// message of its own.

import { proto, toNumber } from '@whiskeysockets/baileys';
import type { Envelope } from './envelope.ts';

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
