// Hands messages over to the bus and only then lets go of them. A chat whose queue is full keeps its
// messages, in order, and does not hold up the others.

import type { InboundEntry } from '../../kernel/bus/bus.ts';
import { BusFullError } from '../../kernel/message/errors.ts';
import {
  type ChatId,
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  type MessageId,
  messageId,
} from '../../kernel/message/ids.ts';
import type { ChannelHost } from '../channel.ts';

/** One row of the ledger as it leaves; without an entry there is nothing to store. */
export type Parcel = { readonly arrival: string; readonly entry?: InboundEntry };

type HandOverDeps = {
  readonly host: Pick<ChannelHost, 'receive'>;
  remove(arrivals: readonly string[]): Promise<void>;
};

const BATCH = 100;

/**
 * `full`: chats that have no room, of which nothing is tried; those found so are added.
 * @returns the parcels that were let go.
 */
export async function handOver<P extends Parcel>(
  parcels: readonly P[],
  full: Set<string>,
  deps: HandOverDeps,
): Promise<readonly P[]> {
  const gone: P[] = [];
  for (let start = 0; start < parcels.length; start += BATCH) {
    const batch = parcels.slice(start, start + BATCH).filter((one) => !full.has(chatOf(one)));
    const taken = (await isTaken(batch, deps)) ? batch : await takenByChat(batch, full, deps);
    await deps.remove(taken.map(({ arrival }) => arrival));
    gone.push(...taken);
  }
  return gone;
}

const chatOf = ({ entry }: Parcel) => entry?.message.chat.chat ?? '';

async function takenByChat<P extends Parcel>(
  batch: readonly P[],
  full: Set<string>,
  deps: HandOverDeps,
): Promise<readonly P[]> {
  const taken: P[] = [];
  for (const [chat, parcels] of Map.groupBy(batch, chatOf)) {
    if (await isTaken(parcels, deps)) taken.push(...parcels);
    else full.add(chat);
  }
  return taken;
}

async function isTaken(batch: readonly Parcel[], { host }: HandOverDeps): Promise<boolean> {
  const entries = batch.flatMap(({ entry }) => entry ?? []);
  if (entries.length === 0) return true;
  try {
    await host.receive(entries);
    return true;
  } catch (error) {
    if (error instanceof BusFullError) return false;
    throw error;
  }
}

// WhatsApp's ids in our terms. The sender of a message chooses its id, so it only counts together with
// the chat and the author.

export const WHATSAPP = channelName('whatsapp');

/** The chat of the account's owner with themself, and the owner as an author. */
export const SELF = 'self';
export const SELF_CHAT: ChatId = chatId(SELF);

/** `whatsapp:default:<chat>/<id>/<author>`; the author is a person's chat or `self`. */
export function whatsappMessageId(chat: string, id: string, author: string): MessageId {
  const name = encodeURIComponent(id.toWellFormed());
  return messageId(`${WHATSAPP}:${DEFAULT_ACCOUNT}:${chat}/${name}/${author}`);
}

/** What makes a message's id. */
export type WhatsAppName = {
  readonly chat: ChatId;
  readonly id: string;
  /** The chat of whoever wrote it. */
  readonly author: ChatId;
};

/** Undefined for an id that is not of this door. */
export function whatsappNameOf(message: MessageId): WhatsAppName | undefined {
  const prefix = `${WHATSAPP}:${DEFAULT_ACCOUNT}:`;
  if (!message.startsWith(prefix)) return undefined;
  const [chat, id, author, ...more] = message.slice(prefix.length).split('/');
  if (!chat || !id || !author || more.length > 0) return undefined;
  return { chat: chatId(chat), id: decodeURIComponent(id), author: chatId(author) };
}
