// What a phone sends to a device that was just linked: the keys of the app state, and the first
// history, inline, with which number belongs to which LID.

import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { deflate } from 'node:zlib';
import { proto } from '@whiskeysockets/baileys';
import { newMessageId } from './message-content.ts';
import type { OwnPhone } from './phone-chats.ts';
import type { Account } from './seams.ts';
import { type Identity, lidJid, numberJid, peerMessage } from './stanzas.ts';

export async function sendFirstSync(
  account: Account,
  phone: OwnPhone,
  acquaintances: readonly Identity[],
  now: number,
): Promise<void> {
  for (const content of [keyShare(now), await firstHistory(account, acquaintances)]) {
    const id = newMessageId();
    await phone.mail.post({
      id,
      message: { protocolMessage: content },
      envelope: (encs) => peerMessage({ id, at: now, from: account }, encs),
    });
  }
}

const { ProtocolMessage } = proto.Message;

function keyShare(now: number): proto.Message.IProtocolMessage {
  const fingerprint = { rawId: 1, currentIndex: 1, deviceIndexes: [0, 1] };
  const keyData = { keyData: randomBytes(32), fingerprint, timestamp: now };
  return {
    type: ProtocolMessage.Type.APP_STATE_SYNC_KEY_SHARE,
    appStateSyncKeyShare: { keys: [{ keyId: { keyId: randomBytes(6) }, keyData }] },
  };
}

async function firstHistory(
  account: Account,
  acquaintances: readonly Identity[],
): Promise<proto.Message.IProtocolMessage> {
  const { INITIAL_BOOTSTRAP: syncType } = proto.HistorySync.HistorySyncType;
  const history = proto.HistorySync.encode({
    syncType,
    conversations: [],
    phoneNumberToLidMappings: [account, ...acquaintances].map((who) => ({
      pnJid: numberJid(who),
      lidJid: lidJid(who),
    })),
    chunkOrder: 1,
    progress: 100,
  }).finish();
  return {
    type: ProtocolMessage.Type.HISTORY_SYNC_NOTIFICATION,
    historySyncNotification: {
      syncType,
      chunkOrder: 1,
      progress: 100,
      initialHistBootstrapInlinePayload: await promisify(deflate)(history),
    },
  };
}
