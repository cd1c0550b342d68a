// Sends one message: checks that it has recipients, stores it, sends it, and awaits the server's
// ack. A failure says how certain its outcome is; a retry keeps the id, so that a repeat shows
// once.

import {
  type AnyMessageContent,
  generateWAMessageContent,
  getContentType,
  isJidGroup,
  jidNormalizedUser,
  type proto,
  USyncQuery,
  USyncUser,
  type WASocket,
} from '@whiskeysockets/baileys';
import type { KeyValueChange } from '../../kernel/bus/store/store.ts';
import {
  BACKOFF,
  DeliveryError,
  NEVER,
  notSent,
  type Remedy,
} from '../../kernel/message/errors.ts';
import type { ChatId } from '../../kernel/message/ids.ts';
import { within } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Link } from './link.ts';
import { isSameAddress } from './rules/jid.ts';
import { type Acks, refusal, type SentMessages, STALE_DEVICES } from './sent-messages.ts';

type Stanza = {
  readonly id: string;
  readonly chat: ChatId;
  readonly jid: string;
  readonly content: AnyMessageContent;
  /** The message it quotes, and when it disappears. */
  readonly context?: proto.IContextInfo | undefined;
  /** Rows that become durable with the message, before it is sent. */
  readonly rows?: readonly KeyValueChange[];
};

export type OpenLink = Pick<Link, 'open' | 'socket'>;

type TransmitDeps = {
  readonly link: OpenLink;
  readonly acks: Acks;
  readonly sent: Pick<SentMessages, 'get' | 'store'>;
  /**
   * Stores that the server has it, in the same transaction as what the bus stores next. Until then
   * a crash makes it be sent again under the same id.
   */
  taken(id: string): void;
  readonly clock: Clock;
};

export type Transmitter = ReturnType<typeof createTransmitter>;

/** After this time the bus waits for the connection. */
const OPEN_MS = 20_000;
/** Time to request devices and keys and to write the bytes. */
const PREPARE_MS = 30_000;
const ACK_MS = 20_000;
/** Large files over a slow connection. */
const UPLOAD_MS = 3 * 60_000;
/** Time for the library to report whether the bytes were written on a lost connection. */
const LAST_WORD_MS = 1000;
/** The library's close code for a connection that was gone before it sent. */
const CLOSED_CODE = 428;
const OUR_CLOSING = 'whatsapp_closed';

export function createTransmitter({ link, acks, sent, taken, clock }: TransmitDeps) {
  const opened = (signal: AbortSignal) =>
    link.open(signal).catch((error) => {
      throw offline(error);
    });
  const open = async (signal: AbortSignal) =>
    link.socket ?? until(OPEN_MS, signal, opened, offline);

  return {
    /** Resolves when there is a connection to send on. @throws DeliveryError not_sent */
    async ready(signal: AbortSignal): Promise<void> {
      await open(signal);
    },
    /** Resolves once the server took the message. @throws DeliveryError */
    async send(stanza: Stanza, signal: AbortSignal): Promise<void> {
      const { id, chat, jid, rows = [] } = stanza;
      const before = await sent.get(id);
      // Its ack came after the wait for it, or the process ended directly after it.
      if (before?.state === 'taken') return;
      const socket = await open(signal);
      const prepare = (devices: 'known' | 'fresh') =>
        until(PREPARE_MS, signal, () => requireRecipients(socket, jid, devices), unprepared);
      await prepare('known');
      const message =
        before?.message ??
        (await until(UPLOAD_MS, signal, () => messageOf(stanza, socket), notUploaded));
      if (before?.jid !== jid || rows.length > 0) {
        const at = before?.at ?? clock.now();
        await sent.store(id, { chat, jid, at, state: 'sending', message }, rows);
      }
      let refusedFor = await deliver(socket, stanza, message, { signal });
      if (refusedFor === STALE_DEVICES) {
        await prepare('fresh');
        refusedFor = await deliver(socket, stanza, message, { signal, isFresh: true });
      }
      if (refusedFor !== undefined) throw refusal(refusedFor);
      taken(id);
    },
  };

  /** @returns the server's code if it refused */
  async function deliver(
    socket: WASocket,
    { id, jid, content }: Stanza,
    message: proto.IMessage,
    { signal, isFresh = false }: { readonly signal: AbortSignal; readonly isFresh?: boolean },
  ): Promise<string | undefined> {
    using expected = acks.expect(socket, id);
    const relayed = socket.relayMessage(jid, message, {
      messageId: id,
      additionalAttributes: attributesOf(content),
      useUserDevicesCache: !isFresh,
      useCachedGroupMetadata: !isFresh,
    });
    const left = relayed.then(() => 'left' as const);
    const either = () => Promise.race([left, expected.answer]).catch(translate);
    const first = await until(PREPARE_MS, signal, either, unsure);
    if (first !== 'left' && first.kind === 'lost') {
      await until(LAST_WORD_MS, signal, () => left.catch(translate), unsure);
    }
    const ack =
      first === 'left' ? await until(ACK_MS, signal, () => expected.answer, unacked) : first;
    if (ack.kind === 'lost') throw unsure();
    return ack.kind === 'refused' ? ack.code : undefined;
  }

  function until<T>(
    ms: number,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
    late: () => DeliveryError,
  ): Promise<T> {
    return within({ clock, ms, signal }, work, late);
  }
}

/** As the library creates it: with the secret that every message carries; a file is uploaded. */
async function messageOf({ content, context }: Stanza, socket: WASocket): Promise<proto.IMessage> {
  const options = { upload: socket.waUploadToServer };
  const message = await generateWAMessageContent(content, options).catch((cause) => {
    throw notUploaded(cause);
  });
  // The library would put it beside the new text of an edit, where no client looks for it.
  const shown = message.protocolMessage?.editedMessage ?? message;
  const kind = getContentType(shown);
  if (kind !== undefined && context) Object.assign(Object(shown[kind]), { contextInfo: context });
  return message;
}

/** The stanza's attributes that mark an edit or a revoke. */
function attributesOf(content: AnyMessageContent): Record<string, string> {
  if ('edit' in content) return { edit: '1' };
  return 'delete' in content ? { edit: '7' } : {};
}

const stays = (code: string, message: string) => (cause?: unknown) =>
  notSent(message, BACKOFF, code, cause);
const mayBeSent = (message: string) => (cause?: unknown) =>
  new DeliveryError(message, {
    ...{ certainty: 'unknown', remedy: BACKOFF, code: 'whatsapp_unacked', cause },
  });

const offline = stays('whatsapp_offline', t`there is no connection to WhatsApp`);
const unprepared = stays(
  'whatsapp_no_recipient',
  t`WhatsApp did not say in time which devices get the message`,
);
const notUploaded = stays(
  'whatsapp_not_uploaded',
  t`the message could not be built, or its file not uploaded in time`,
);
const notLeft = stays('whatsapp_offline', t`the message could not be handed to the connection`);
const unsure = mayBeSent(
  t`the message was being sent when the connection or the time for it ended`,
);
const unacked = mayBeSent(t`WhatsApp did not confirm the message in time`);

/** Distinguishes errors before the bytes are written from errors while they are. */
function translate(error: unknown): never {
  if (error instanceof DeliveryError) throw error;
  const status = Reflect.get(Object(Reflect.get(Object(error), 'output')), 'statusCode');
  const isClosed = status === CLOSED_CODE || Reflect.get(Object(error), 'code') === OUR_CLOSING;
  // A closed websocket rejects queries with its bare code; without a session no message is made.
  const isEarlier = typeof error === 'number' || status === 500;
  throw isClosed || isEarlier ? notLeft(error) : unsure(error);
}

// Whether anybody would get a message, checked before it is sent: the library silently encrypts for
// nobody if the server knows no devices, or if its answer did not come in time.

type DeviceSource = Pick<WASocket, 'user' | 'getUSyncDevices' | 'executeUSyncQuery'>;

/** The server's code for an unknown person. */
const NOT_FOUND = 404;

/** @throws DeliveryError not_sent */
async function requireRecipients(
  socket: DeviceSource,
  jid: string,
  devices: 'known' | 'fresh',
): Promise<void> {
  if (isJidGroup(jid)) return;
  if (await hasDevices(socket, jid, devices === 'known')) return;
  // A query that timed out is empty as well: only a real answer counts as unknown.
  const isKnown = await asked(socket, jid);
  if (isKnown === false) throw nobody(t`this address is not on WhatsApp`, NEVER);
  throw nobody(t`WhatsApp does not say which devices would get the message`, BACKOFF);
}

/** Requests the own devices as well: the send needs both, and finds them cached. */
async function hasDevices(
  socket: DeviceSource,
  jid: string,
  mayBeKnown: boolean,
): Promise<boolean> {
  const own = jid.endsWith('@lid') ? socket.user?.lid : socket.user?.id;
  const jids = own === undefined ? [jid] : [jidNormalizedUser(own), jid];
  try {
    const devices = await socket.getUSyncDevices(jids, mayBeKnown, false);
    return devices.some((device) => isSameAddress(device.jid, jid));
  } catch (error) {
    if (codeOf(error) === NOT_FOUND) return false;
    throw nobody(t`WhatsApp did not say which devices would get the message`, BACKOFF, error);
  }
}

/** Whether the server knows devices of this address; undefined while it does not answer. */
async function asked(socket: DeviceSource, jid: string): Promise<boolean | undefined> {
  const query = new USyncQuery()
    .withContext('message')
    .withDeviceProtocol()
    .withUser(new USyncUser().withId(jid));
  try {
    const result = await socket.executeUSyncQuery(query);
    return result?.list.some(({ id, devices }) => {
      const list: unknown = Reflect.get(Object(devices), 'deviceList');
      return isSameAddress(id, jid) && Array.isArray(list) && list.length > 0;
    });
  } catch (error) {
    return codeOf(error) === NOT_FOUND ? false : undefined;
  }
}

/** Where the library puts the server's error code. */
const codeOf = (error: unknown): unknown => Reflect.get(Object(error), 'data');

const nobody = (message: string, remedy: Remedy, cause?: unknown) =>
  notSent(message, remedy, 'whatsapp_no_recipient', cause);
