// Messages that could not be decrypted. The library asks for them again by itself; what has not come
// after that is told to the owner. Keys and sessions are never touched.

import { type BaileysEventEmitter, proto, type WAMessage } from '@whiskeysockets/baileys';
import type { ChannelHost } from '../channel.ts';
import { nameOf } from './inbound.ts';
import { idOfPerson, isPerson, parseJid } from './rules/jid.ts';
import { type Missing, type Peer, UnreadableBook } from './unreadable-book.ts';

export interface Undecryptable {
  /** Watches a connection's stubs until disposed. */
  attach(socket: { readonly ev: Pick<BaileysEventEmitter, 'on' | 'off'> }): Disposable;
  /** These messages came in readable form. */
  arrived(ids: readonly string[]): void;
  /** Logs and tells once a minute, until aborted. */
  run(signal: AbortSignal): Promise<void>;
}

const ROW = 'undecryptable';
const LOOK_EVERY_MS = 60_000;
/** More people than these are told of in one sentence. */
const MAX_NOTICES = 3;

export function createUndecryptable(
  host: Pick<ChannelHost, 'state' | 'clock' | 'log' | 'alert'>,
): Undecryptable {
  const { state, clock, log } = host;
  const book = new UnreadableBook();

  function onUpsert({ messages }: { readonly messages: readonly WAMessage[] }) {
    for (const message of messages) {
      if (!isUnreadable(message)) continue;
      const { id } = message.key;
      if (id) book.add(peerOf(message), id, clock.now(), isWorthTelling(message));
    }
  }

  async function look() {
    const tally = book.takeTally();
    if (tally !== undefined) log.warn('whatsapp messages could not be decrypted', tally);
    for (const notice of noticesOf(book.takeMissing(clock.now()))) host.alert(notice);
    const changed = book.takeChange();
    if (changed !== undefined) await state.set(ROW, changed);
  }

  return {
    attach({ ev }) {
      ev.on('messages.upsert', onUpsert);
      return { [Symbol.dispose]: () => ev.off('messages.upsert', onUpsert) };
    },
    arrived(ids) {
      for (const id of ids) book.arrived(id);
    },
    async run(signal) {
      const stored = await state.get(ROW);
      if (stored !== undefined) book.restore(stored);
      while (!signal.aborted) {
        await clock.sleep(LOOK_EVERY_MS, signal).catch(() => undefined);
        await look();
      }
    },
  };
}

/** A stub, or a message to be viewed once, which a linked device is never given. */
function isUnreadable(message: WAMessage): boolean {
  if (message.messageStubType === proto.WebMessageInfo.StubType.CIPHERTEXT) return true;
  return message.key.isViewOnce === true && !message.message;
}

/** In a group most messages are not for the agent, and from our own phone come programs' messages too. */
function isWorthTelling({ key }: WAMessage): boolean {
  return key.fromMe !== true && isPerson(parseJid(key.remoteJid));
}

function peerOf(message: WAMessage): Peer {
  const { key } = message;
  const jids = [key.participantAlt, key.remoteJidAlt, key.participant, key.remoteJid].map(parseJid);
  const person = jids.find((jid) => jid.kind === 'number') ?? jids.find(isPerson);
  const name = nameOf({ key: { fromMe: key.fromMe === true }, pushName: message.pushName });
  return { id: person !== undefined && isPerson(person) ? idOfPerson(person) : 'unknown', name };
}

function noticesOf(missing: readonly Missing[]): readonly string[] {
  if (missing.length <= MAX_NOTICES) return missing.map(noticeOf);
  const named = missing.slice(0, MAX_NOTICES).map(whoOf).join(', ');
  return [`could not read messages from ${missing.length} people, among them ${named}. ${ADVICE}`];
}

const ADVICE = 'They were asked for again and did not come: ask for them to be sent once more.';

function noticeOf(one: Missing): string {
  const isOne = one.count === 1 && !one.orMore;
  const count = isOne ? 'one message' : `${one.count}${one.orMore ? ' or more' : ''} messages`;
  const advice = isOne
    ? 'It was asked for again and did not come: ask for it to be sent once more.'
    : ADVICE;
  return `could not read ${count} from ${whoOf(one)}. ${advice}`;
}

const whoOf = ({ id, name }: Peer) => (name === undefined ? id : `${name} (${id})`);
