// What a phone sends to a device that was just linked: the keys of the app state, and the first
// history, inline, with which number belongs to which LID.

import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { deflate } from 'node:zlib';
import { proto } from '@whiskeysockets/baileys';
import { newMessageId } from './message-content.ts';
import type { Account } from './seams.ts';
import type { SentMail } from './sent-mail.ts';
import { type Identity, lidJid, numberJid, peerMessage } from './stanzas.ts';

/** A message that the phone got while no device was linked. */
export type PastMessage = {
  readonly id: string;
  readonly at: number;
  readonly from: Identity;
  readonly message: proto.IMessage;
};

type FirstSync = {
  readonly account: Account;
  readonly mail: SentMail;
  readonly acquaintances: readonly Identity[];
  readonly past: readonly PastMessage[];
  readonly now: number;
};

export async function sendFirstSync(sync: FirstSync): Promise<void> {
  const { account, mail, now } = sync;
  for (const content of [keyShare(now), await firstHistory(sync)]) {
    const id = newMessageId();
    await mail.post({
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

async function firstHistory({
  account,
  acquaintances,
  past,
}: FirstSync): Promise<proto.Message.IProtocolMessage> {
  const { INITIAL_BOOTSTRAP: syncType } = proto.HistorySync.HistorySyncType;
  const history = proto.HistorySync.encode({
    syncType,
    conversations: acquaintances.flatMap((who) => conversation(who, past)),
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

function conversation(who: Identity, past: readonly PastMessage[]): proto.IConversation[] {
  const theirs = past.filter(({ from }) => from.lid === who.lid);
  if (theirs.length === 0) return [];
  const messages = theirs.toReversed().map(({ id, at, message }) => ({
    message: {
      key: { remoteJid: lidJid(who), fromMe: false, id },
      message,
      messageTimestamp: Math.floor(at / 1000),
      pushName: who.name,
    },
  }));
  return [{ id: lidJid(who), pnJid: numberJid(who), name: who.name, messages }];
}
