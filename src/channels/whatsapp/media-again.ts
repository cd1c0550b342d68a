// A file that WhatsApp's media host keeps no longer (some weeks) is asked of the account's own phone,
// which puts it there once more where it still has it: by a receipt of type `server-error` for the
// message, answered by a notification of type `mediaretry`, both sealed under the file's key.

import {
  decryptMediaRetryData,
  encryptMediaRetryRequest,
  proto,
  type WAMessageKey,
  type WASocket,
} from '@whiskeysockets/baileys';
import type { WhatsAppMediaRef } from '../../core/whatsapp/media.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';

export type MediaAgainDeps = {
  /** Of the connection that is open now. */
  socket(): WASocket | undefined;
  readonly clock: Clock;
  readonly log: Logger;
};

/** The new place of the file; undefined where the phone does not have it or does not answer. */
export type MediaAgain = (ref: WhatsAppMediaRef) => Promise<string | undefined>;

/** A phone that is asleep is woken by the request, one that is off is not. */
const DEADLINE_MS = 30_000;
/** Messages of which is remembered what came of asking: each is asked for once. */
const REMEMBERED = 200;
const { SUCCESS } = proto.MediaRetryNotification.ResultType;

export function createMediaAgain({ socket, clock, log }: MediaAgainDeps): MediaAgain {
  const asked = new Map<string, Promise<string | undefined>>();

  async function ask(ref: WhatsAppMediaRef): Promise<string | undefined> {
    const { message } = ref;
    const open = socket();
    const me = open?.authState.creds.me?.id;
    if (message === undefined || open === undefined || me === undefined) return undefined;
    const mediaKey = Buffer.from(ref.mediaKey, 'base64');
    const answered = Promise.withResolvers<string | undefined>();
    const onUpdate = (updates: readonly MediaUpdate[]) => {
      const ours = updates.find(({ key }) => key.id === message.id);
      if (ours !== undefined) answered.resolve(placeIn(ours, mediaKey, message.id));
    };
    open.ev.on('messages.media-update', onUpdate);
    const late = clock.timer(DEADLINE_MS, () => answered.resolve(undefined));
    try {
      await open.sendNode(encryptMediaRetryRequest(message, mediaKey, me));
      return await answered.promise;
    } catch (error) {
      log.info('whatsapp phone not asked for a file', { error });
      return undefined;
    } finally {
      late[Symbol.dispose]();
      open.ev.off('messages.media-update', onUpdate);
    }
  }

  return (ref) => {
    const name = `${ref.message?.remoteJid}/${ref.message?.id}`;
    const known = asked.get(name);
    if (known !== undefined) return known;
    const asking = ask(ref).then((place) => {
      log.info('whatsapp phone asked for a file', { isThere: place !== undefined });
      return place;
    });
    asked.set(name, asking);
    const [oldest] = asked.keys();
    if (asked.size > REMEMBERED && oldest !== undefined) asked.delete(oldest);
    return asking;
  };
}

type MediaUpdate = {
  readonly key: WAMessageKey;
  readonly media?: { readonly ciphertext: Uint8Array; readonly iv: Uint8Array };
};

/** Nobody but who has the file's key can have sealed it. */
function placeIn({ media }: MediaUpdate, mediaKey: Uint8Array, id: string): string | undefined {
  if (media === undefined) return undefined;
  try {
    const { result, directPath, stanzaId } = decryptMediaRetryData(media, mediaKey, id);
    const isMeant = result === SUCCESS && (stanzaId ?? id) === id;
    return isMeant && directPath ? directPath : undefined;
  } catch {
    return undefined;
  }
}
