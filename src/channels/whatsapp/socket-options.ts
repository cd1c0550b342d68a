// The options every socket of ours is made with, and which addresses it may connect to. TLS is the
// only thing that authenticates WhatsApp's server: certificate checks are never switched off, and
// an unencrypted connection stays on this machine.

import { proto, type SocketConfig, type UserFacingSocketConfig } from '@whiskeysockets/baileys';
import { ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { createUploadAgent } from './carrier.ts';

export type SocketParts = {
  readonly url: URL;
  readonly auth: UserFacingSocketConfig['auth'];
  readonly logger: SocketConfig['logger'];
  readonly agent: NonNullable<SocketConfig['agent']>;
  readonly getMessage: SocketConfig['getMessage'];
  readonly cachedGroupMetadata: SocketConfig['cachedGroupMetadata'];
  readonly makeSignalRepository: SocketConfig['makeSignalRepository'];
};

const { HistorySyncType } = proto.HistorySync;

/** @throws ChannelError with remedy `never` for an address that is not allowed. */
export function parseSocketUrl(text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol === 'wss:') return url;
  if (url?.protocol === 'ws:' && isLoopbackHost(url.hostname)) return url;
  const problem = 'channels.whatsapp.socketUrl must be wss:, or ws: on a loopback address';
  throw new ChannelError('whatsapp_settings', problem, { remedy: NEVER });
}

/** Reference section 6. What is left out keeps the library's default, its client version as well. */
export function socketOptions(parts: SocketParts): UserFacingSocketConfig {
  return {
    waWebSocketUrl: parts.url,
    auth: parts.auth,
    logger: parts.logger,
    agent: parts.agent,
    fetchAgent: createUploadAgent(parts.url),
    getMessage: parts.getMessage,
    cachedGroupMetadata: parts.cachedGroupMetadata,
    makeSignalRepository: parts.makeSignalRepository,
    // Else the owner's phone would no longer ring.
    markOnlineOnConnect: false,
    syncFullHistory: false,
    shouldSyncHistoryMessage: wantsHistory,
    generateHighQualityLinkPreview: false,
    // After each message that could not be read the library waits for so long and takes in no other: by
    // its default a flood from one person silences everybody. Without any wait it starves all timers.
    retryRequestDelayMs: 1,
  };
}

/**
 * The first sync tells which LID is which number; recent chats are megabytes of no use to us. Asked
 * about them before any came (then no file is named), the library only wants to know whether to
 * wait for the first sync, which brings our own name.
 */
function wantsHistory(notice: proto.Message.IHistorySyncNotification): boolean {
  switch (notice.syncType) {
    case HistorySyncType.INITIAL_BOOTSTRAP:
    case HistorySyncType.PUSH_NAME:
      return true;
    case HistorySyncType.RECENT:
      return !notice.directPath && !notice.initialHistBootstrapInlinePayload?.length;
    default:
      return false;
  }
}
