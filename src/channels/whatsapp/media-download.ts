// Downloads files from WhatsApp's media host and decrypts them: AES-CBC under keys from the
// message, with the first ten bytes of an HMAC at the end. A content with a wrong HMAC is rejected.

import { createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type Agent, request } from 'node:https';
import {
  type BaileysEventMap,
  DEF_MEDIA_HOST,
  decryptMediaRetryData,
  encryptMediaRetryRequest,
  getMediaKeys,
  proto,
  type WASocket,
} from '@whiskeysockets/baileys';
import { RecentMap } from '../../lib/async.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';
import { orAborted } from '../../lib/time/clock.ts';
import { AttachmentError, type ChannelHost } from '../channel.ts';
import type { WhatsAppMediaRef } from './message.ts';

const MEDIA_GONE = 'whatsapp_media_gone';
const MAC_BYTES = 10;
/** For a missing key, which the library's type permits; nothing is authentic under it. */
const NO_KEY = new Uint8Array();
/** The media host answers only requests with the web client's origin. */
const ORIGIN = 'https://web.whatsapp.com';

type MediaDownloadDeps = {
  /**
   * The URL of the account's connection: only if that is on this machine may a message name its
   * media host, which is then on this machine too. All other files are on WhatsApp's hosts.
   */
  readonly socketUrl: string;
  /** Connects to the media host. */
  readonly agent: Agent;
  readonly again: MediaAgain;
};

/** @throws AttachmentError */
export async function* downloadMedia(
  ref: string,
  deps: MediaDownloadDeps,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const file: WhatsAppMediaRef = JSON.parse(ref);
  const { type, mediaKey } = file;
  const {
    iv,
    cipherKey,
    macKey = NO_KEY,
  } = await getMediaKeys(Buffer.from(mediaKey, 'base64'), type);
  const response = await found(file, deps, signal);
  const decipher = createDecipheriv('aes-256-cbc', cipherKey, iv);
  const hmac = createHmac('sha256', macKey).update(iv);
  let tail: Buffer = Buffer.alloc(0);
  try {
    for await (const piece of response) {
      const known = Buffer.concat([tail, piece as Buffer]);
      const end = Math.max(0, known.length - MAC_BYTES);
      tail = known.subarray(end);
      const body = known.subarray(0, end);
      hmac.update(body);
      yield decipher.update(body);
    }
  } finally {
    response.destroy();
  }
  const mac = hmac.digest().subarray(0, MAC_BYTES);
  if (tail.length !== MAC_BYTES || !timingSafeEqual(mac, tail)) {
    throw new AttachmentError('whatsapp_media', t`it arrived damaged`, { isFinal: false });
  }
  yield decipher.final();
}

/** Asks the phone to upload a file again that the host no longer has. */
async function found(
  file: WhatsAppMediaRef,
  { socketUrl, agent, again }: MediaDownloadDeps,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const host = hostFor(file.host, socketUrl);
  try {
    return await opened(placeAt(file.path, host), agent, signal);
  } catch (error) {
    const isGone = error instanceof AttachmentError && error.code === MEDIA_GONE;
    const path = isGone ? await orAborted(again(file), signal) : undefined;
    if (path === undefined) throw error;
    return opened(placeAt(path, host), agent, signal);
  }
}

function hostFor(named: string, socketUrl: string): string {
  const isHere = (host: string | undefined) => host !== undefined && isLoopbackHost(host);
  const isTest = isHere(URL.parse(socketUrl)?.hostname);
  const isOnMachine = isHere(URL.parse(`https://${named}`)?.hostname);
  return isTest && isOnMachine ? named : DEF_MEDIA_HOST;
}

/** A path can look like a URL (`//host/`, `/\\host/`) and must not lead to another host. */
function placeAt(path: string, host: string): URL {
  const root = new URL(`https://${host}`);
  const place = URL.parse(path, root);
  if (place !== null && place.origin === root.origin) return place;
  throw new AttachmentError('whatsapp_media', t`it does not point to a WhatsApp server`, {
    isFinal: true,
  });
}

function opened(
  { host, hostname, port, pathname, search }: URL,
  agent: Agent,
  signal: AbortSignal,
) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const path = `${pathname}${search}`;
    const headers = { origin: ORIGIN, host };
    const call = request({ hostname, port, path, headers, agent, signal }, (response) => {
      const status = response.statusCode ?? 0;
      if (status === 200) return resolve(response);
      response.resume();
      reject(refusal(status));
    });
    call.on('error', (cause) => {
      const reason = 'WhatsApp’s media host could not be reached';
      reject(new AttachmentError('whatsapp_media', reason, { isFinal: false, cause }));
    });
    call.end();
  });
}

function refusal(status: number): AttachmentError {
  const isGone = status === 403 || status === 404 || status === 410;
  const reason = isGone
    ? t`WhatsApp no longer has it; ask for it to be sent again`
    : t`WhatsApp’s media host did not deliver it`;
  return new AttachmentError(isGone ? MEDIA_GONE : 'whatsapp_media', reason, { isFinal: isGone });
}

// A file that WhatsApp's media host no longer has (after some weeks) is requested from the
// account's own phone, which uploads it again if it still has it: by a receipt of type
// `server-error` for the message, answered by a notification of type `mediaretry`, both sealed with
// the file's key.

type MediaAgainDeps = Pick<ChannelHost, 'clock' | 'log'> & {
  /** The socket of the open connection. */
  socket(): WASocket | undefined;
};

/** The new location of the file; undefined if the phone does not have it or does not answer. */
export type MediaAgain = (ref: WhatsAppMediaRef) => Promise<string | undefined>;

/** The request wakes a sleeping phone, but not one that is off. */
const DEADLINE_MS = 30_000;
/** Number of messages whose outcome is stored: each file is requested once. */
const REMEMBERED = 200;
const { SUCCESS } = proto.MediaRetryNotification.ResultType;

export function createMediaAgain({ socket, clock, log }: MediaAgainDeps): MediaAgain {
  const asked = new RecentMap<string, Promise<string | undefined>>(REMEMBERED);

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
    using _late = clock.timer(DEADLINE_MS, () => answered.resolve(undefined));
    try {
      const key = { ...message, participant: message.participant ?? null };
      await open.sendNode(encryptMediaRetryRequest(key, mediaKey, me));
      return await answered.promise;
    } catch (error) {
      log.info('file not requested from the whatsapp phone', { error });
      return undefined;
    } finally {
      open.ev.off('messages.media-update', onUpdate);
    }
  }

  return (ref) => {
    const name = `${ref.message?.remoteJid}/${ref.message?.id}`;
    const known = asked.get(name);
    if (known !== undefined) return known;
    const asking = ask(ref).then((place) => {
      log.info('file requested from the whatsapp phone', { isThere: place !== undefined });
      return place;
    });
    asked.set(name, asking);
    return asking;
  };
}

type MediaUpdate = BaileysEventMap['messages.media-update'][number];

/** Only a holder of the file's key can have sealed it. */
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
