// One row of the ledger to what the bus stores: chat, sender, whether a group message addresses the account,
// and why it is no question for the agent where it is none. A row of any shape gets an answer.

import type { proto, SocketConfig, WAMessageKey, WASocket } from '@whiskeysockets/baileys';
import type { InboundEntry } from '../../kernel/bus/bus.ts';
import {
  type ChatId,
  chatId,
  DEFAULT_ACCOUNT,
  nativeId,
  type UserId,
  userId,
} from '../../kernel/message/ids.ts';
import type {
  GroupRef,
  InboundMessage,
  PersonSender,
  Quote,
} from '../../kernel/message/message.ts';
import { headOf } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { WhatsAppReading, WhatsAppSign } from './content.ts';
import { isOwnAddress, type LinkedAccount, ownIds } from './creds.ts';
import type { MessageKey } from './envelope.ts';
import {
  isPerson,
  type PersonJid,
  parseJid,
  SELF,
  WHATSAPP,
  whatsappMessageId,
} from './rules/jid.ts';

/** A stored message as the ledger hands it out. */
export type InboxRow = {
  readonly arrival: string;
  readonly key: MessageKey;
  /** Epoch milliseconds by the server's clock. */
  readonly sentAt: number;
  readonly receivedAt: number;
  readonly pushName?: string;
  readonly message: proto.IMessage;
};

type Address = { readonly address: PersonJid; readonly alt?: PersonJid };

/** Where a message was said. */
export type Place =
  | (Address & { readonly kind: 'direct'; readonly fromMe: boolean })
  /** The owner's chat with themself. */
  | { readonly kind: 'self'; readonly address: PersonJid }
  | (Address & { readonly kind: 'group'; readonly group: string; readonly fromMe: boolean })
  /** A person wrote to a list of people. */
  | (Address & { readonly kind: 'list'; readonly fromMe: boolean })
  /** Nothing that is said to us: a status, a newsletter. */
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'unreadable' };

export function placeOf({ key }: InboxRow, own: LinkedAccount | undefined): Place {
  const chat = parseJid(key.remoteJid);
  const { fromMe } = key;
  if (isPerson(chat)) {
    if (isOwnAddress(chat, own)) return fromMe ? { kind: 'self', address: chat } : UNREADABLE;
    return { kind: 'direct', fromMe, ...withAlt(chat, key.remoteJidAlt) };
  }
  if (chat.kind === 'status' || chat.kind === 'newsletter') return { kind: 'elsewhere' };
  if (chat.kind === 'unreadable') return UNREADABLE;
  const author = parseJid(key.participant);
  if (!isPerson(author)) return UNREADABLE;
  const who = withAlt(author, key.participantAlt || key.remoteJidAlt);
  if (chat.kind === 'broadcast') return { kind: 'list', fromMe, ...who };
  return { kind: 'group', group: chat.jid, fromMe, ...who };
}

const UNREADABLE: Place = { kind: 'unreadable' };

function withAlt(address: PersonJid, text: string | undefined): Address {
  const alt = parseJid(text);
  return isPerson(alt) && alt.kind !== address.kind ? { address, alt } : { address };
}

/** Server time, then arrival: how messages that waited while we were offline are put in order. */
export function inOrder<Row extends Pick<InboxRow, 'sentAt' | 'arrival'>>(
  rows: readonly Row[],
): readonly Row[] {
  return rows.toSorted((a, b) => a.sentAt - b.sentAt || (a.arrival < b.arrival ? -1 : 1));
}

type Circumstances = {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly maxAgeMs: number;
  /** The owner has the say in this chat until then; epoch milliseconds. */
  readonly ownerUntil: number;
  /** What it does to an earlier message. */
  readonly sign?: WhatsAppSign | undefined;
};

/** Why the agent does not answer this, first reason first. */
export function gateOf(
  row: InboxRow,
  reading: WhatsAppReading | undefined,
  { now, maxAgeMs, ownerUntil, sign }: Circumstances,
): string | undefined {
  if (row.sentAt < now - maxAgeMs) return 'too old';
  if (reading === undefined && sign === undefined) return 'nothing to read';
  if (reading?.isEdit && sign === undefined) return 'edited';
  return row.sentAt <= ownerUntil ? 'the owner answers here' : undefined;
}

export type Speaker = {
  readonly chat: ChatId;
  /** How chat and author are spelled in the message's id. */
  readonly chatThen: string;
  readonly authorThen: string;
  readonly id: UserId;
  readonly alsoKnownAs: readonly UserId[];
  readonly addressing: InboundMessage['addressing'];
  readonly group?: GroupRef;
};

export function toEntry(
  row: InboxRow,
  speaker: Speaker,
  content: Pick<
    InboundMessage,
    'text' | 'attachments' | 'mayContinue' | 'quoted' | 'replyTo' | 'amends' | 'reaction'
  >,
  gate: string | undefined,
): InboundEntry {
  const name = nameOf(row);
  const { id, alsoKnownAs } = speaker;
  const sender: PersonSender = {
    kind: 'person',
    id,
    ...(name === undefined ? {} : { name }),
    verified: 'verified',
    ...(alsoKnownAs.length === 0 ? {} : { alsoKnownAs }),
  };
  const message: InboundMessage = {
    id: whatsappMessageId(speaker.chatThen, row.key.id, speaker.authorThen),
    chat: { channel: WHATSAPP, account: DEFAULT_ACCOUNT, chat: speaker.chat },
    sender,
    addressing: speaker.addressing,
    ...(speaker.group === undefined ? {} : { group: speaker.group }),
    ...content,
    sentAt: row.sentAt,
    receivedAt: row.receivedAt,
  };
  return gate === undefined ? { kind: 'queue', message } : { kind: 'record', message, gate };
}

/** A change is of what the same person wrote here; a reaction is to something of ours. */
export function signFields(
  sign: WhatsAppSign | undefined,
  { chatThen, authorThen }: Pick<Speaker, 'chatThen' | 'authorThen'>,
): Pick<InboundMessage, 'amends' | 'reaction'> {
  if (sign === undefined) return {};
  if (sign.kind === 'reacted') {
    const { id, emoji } = sign;
    const to = nativeId(id);
    return { reaction: emoji === undefined ? { to } : { to, emoji } };
  }
  return { amends: { id: whatsappMessageId(chatThen, sign.id, authorThen), kind: sign.kind } };
}

/** A record of a row whose sender or chat cannot be known: it is answered by nobody. */
export function unreadableEntry(row: InboxRow): InboundEntry {
  const speaker: Speaker = {
    chat: chatId(NOBODY),
    chatThen: NOBODY,
    authorThen: NOBODY,
    id: userId(NOBODY),
    alsoKnownAs: [],
    addressing: 'ambient',
  };
  const entry = toEntry(row, speaker, { text: '' }, 'sender not readable');
  return { ...entry, message: { ...entry.message, sender: UNKNOWN_SENDER } };
}

const NOBODY = 'unknown';
const UNKNOWN_SENDER: PersonSender = {
  kind: 'person',
  id: userId(NOBODY),
  verified: 'unverified',
};

/** Who wrote what the agent sent, in a quote. */
const OURSELVES = 'you';

/** What the message answers; `isOurs`: the agent sent the quoted one. */
export function quoteOf(
  row: InboxRow,
  reading: WhatsAppReading | undefined,
  speaker: Speaker,
  own: LinkedAccount | undefined,
  isOurs: boolean,
): Pick<InboundMessage, 'quoted' | 'replyTo'> {
  const quote = reading?.quoted;
  if (quote === undefined) return {};
  const author = parseJid(quote.authorJid);
  const isByOwner = isPerson(author) && isOwnAddress(author, own);
  const isByThem = isPerson(author) && !isByOwner && speaker.addressing === 'direct';
  const name = isOurs ? OURSELVES : isByThem ? nameOf(row) : undefined;
  const quoted: Quote | undefined =
    quote.text === undefined
      ? undefined
      : { text: quote.text, ...(name === undefined ? {} : { author: name }) };
  const quotedAuthor = isOurs || speaker.id === SELF ? SELF : speaker.authorThen;
  const isKnown = isOurs || isByThem || speaker.id === SELF;
  return {
    ...(quoted === undefined ? {} : { quoted }),
    ...(isKnown ? { replyTo: whatsappMessageId(speaker.chatThen, quote.id, quotedAuthor) } : {}),
  };
}

const MAX_NAME_CHARS = 100;

/** The name people chose for themselves: shown, never trusted. */
export function nameOf({
  pushName,
  key,
}: {
  readonly pushName?: string | null | undefined;
  readonly key: { readonly fromMe: boolean };
}): string | undefined {
  if (key.fromMe) return undefined;
  const name = (pushName ?? '').replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return name === '' ? undefined : headOf(name, MAX_NAME_CHARS);
}

// Which messages of a chat were not marked as read yet. In memory only: after a restart the phone
// shows them as unread, and nothing is lost by that.

export interface Unread {
  note(chat: ChatId, key: WAMessageKey): void;
  /** Takes out what is to be marked as read in a chat of these names, oldest first. */
  take(names: readonly ChatId[]): readonly WAMessageKey[];
}

const MAX_PER_CHAT = 100;
const MAX_CHATS = 500;

export function createUnread(): Unread {
  const chats = new Map<ChatId, readonly WAMessageKey[]>();

  return {
    note(chat, key) {
      const keys = [...(chats.get(chat) ?? []), key].slice(-MAX_PER_CHAT);
      chats.delete(chat);
      chats.set(chat, keys);
      const [oldest] = chats.keys();
      if (chats.size > MAX_CHATS && oldest !== undefined) chats.delete(oldest);
    },
    take(names) {
      const keys = names.flatMap((name) => chats.get(name) ?? []);
      for (const name of names) chats.delete(name);
      return keys;
    },
  };
}

// Whether a message in a group is for the account: it names it, or answers what the agent sent. Pure.

/** `isQuoteOurs`: the agent sent the message of the quoted id; its author is checked here. */
export function groupAddressing(
  reading: WhatsAppReading | undefined,
  isQuoteOurs: boolean,
  own: LinkedAccount | undefined,
): InboundMessage['addressing'] {
  if (reading?.mentioned?.some((jid) => isOwnAddress(jid, own))) return 'mention';
  const author = parseJid(reading?.quoted?.authorJid);
  const isOurs = isQuoteOurs && isPerson(author) && isOwnAddress(author, own);
  return isOurs ? 'reply' : 'ambient';
}

/** The text without our own name in front, so that a command behind it is one. */
export function withoutOwnName(text: string, own: LinkedAccount | undefined): string {
  const trimmed = text.trimStart();
  const name = ownIds(own).find((id) => trimmed.startsWith(`@${id}`));
  if (name === undefined) return text;
  const rest = trimmed.slice(name.length + 1).replace(/^[\s,:]+/, '');
  return rest === '' ? text : rest;
}

// Who is in a group, remembered so that not every message asks the server first. Forgotten as soon as
// the server says that something in the group changed, and with each connection.

type Metadata = Awaited<ReturnType<WASocket['groupMetadata']>>;

export type GroupSource = {
  readonly ws: Pick<WASocket['ws'], 'on' | 'off'>;
  groupMetadata(jid: string): Promise<Metadata>;
};

export interface GroupMembers {
  /** For the library, which asks before each message to a group. */
  readonly of: SocketConfig['cachedGroupMetadata'];
  /** To be called with each new socket; disposed when its connection is over. */
  attach(socket: GroupSource): Disposable;
}

/** A notice that was lost must not count for ever. */
const LIFETIME_MS = 600_000;
const MAX_GROUPS = 200;
const CHANGED = 'CB:notification,type:w:gp2';

export function createGroupMembers(clock: Clock): GroupMembers {
  const known = new Map<string, { readonly at: number; readonly metadata: Promise<Metadata> }>();
  let socket: GroupSource | undefined;

  function ask(source: GroupSource, jid: string): Promise<Metadata> {
    const metadata = source.groupMetadata(jid);
    known.delete(jid);
    known.set(jid, { at: clock.monotonic(), metadata });
    metadata.catch(() => known.delete(jid));
    const [oldest] = known.keys();
    if (known.size > MAX_GROUPS && oldest !== undefined) known.delete(oldest);
    return metadata;
  }

  return {
    async of(jid) {
      const remembered = known.get(jid);
      if (remembered !== undefined && clock.monotonic() - remembered.at < LIFETIME_MS) {
        return remembered.metadata;
      }
      return socket === undefined ? undefined : ask(socket, jid);
    },

    attach(fresh) {
      const changed = ({ attrs }: { readonly attrs: Readonly<Record<string, string>> }) => {
        known.delete(attrs['from'] ?? '');
      };
      known.clear();
      socket = fresh;
      fresh.ws.on(CHANGED, changed);
      return {
        [Symbol.dispose]() {
          fresh.ws.off(CHANGED, changed);
          if (socket === fresh) socket = undefined;
        },
      };
    },
  };
}
