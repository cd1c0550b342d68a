// Converts one row of the ledger to what the bus stores: chat, sender, whether a group message
// addresses the account, and why the agent does not answer it. A row of any shape becomes an entry.
// Pure.

import type { InboundEntry } from '../../kernel/bus/bus.ts';
import {
  type ChatId,
  chatId,
  DEFAULT_ACCOUNT,
  nativeId,
  type UserId,
  userId,
} from '../../kernel/message/ids.ts';
import type { GroupRef, InboundMessage } from '../../kernel/message/message.ts';
import { headOf } from '../../lib/text/cut.ts';
import { entryOf, OURSELVES, personSender } from '../inbound-message.ts';
import type { WhatsAppReading, WhatsAppSign } from './content.ts';
import { isOwnAddress, type LinkedAccount, ownIds } from './creds.ts';
import type { LedgerRow } from './ledger.ts';
import { filesOfMessage } from './message.ts';
import type { Person } from './people.ts';
import {
  isPerson,
  type PersonJid,
  parseJid,
  SELF,
  SELF_CHAT,
  WHATSAPP,
  whatsappMessageId,
} from './rules/jid.ts';

type Address = { readonly address: PersonJid; readonly alt?: PersonJid };

/** Where a message was written. */
export type Place =
  | (Address & { readonly kind: 'direct'; readonly fromMe: boolean })
  /** The owner's chat with themself. */
  | { readonly kind: 'self'; readonly address: PersonJid }
  | (Address & { readonly kind: 'group'; readonly group: string; readonly fromMe: boolean })
  /** A broadcast of a person to a list of people. */
  | (Address & { readonly kind: 'list'; readonly fromMe: boolean })
  /** Addressed to nobody in particular: a status, a newsletter. */
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'unreadable' };

export function placeOf({ key }: LedgerRow, own: LinkedAccount | undefined): Place {
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

/** The author, and the chat. */
export type Speaker = {
  readonly chat: ChatId;
  /** The spelling of chat and author in the message's id. */
  readonly chatThen: string;
  readonly authorThen: string;
  readonly id: UserId;
  readonly alsoKnownAs: readonly UserId[];
  readonly group?: GroupRef;
};

export function speakerOf(
  place: Extract<Place, Address>,
  { chat, id, alsoKnownAs, chatAt }: Person,
  { sentAt }: LedgerRow,
): Speaker {
  const authorThen = chatAt(sentAt);
  if (place.kind !== 'group') return { chat, chatThen: authorThen, authorThen, id, alsoKnownAs };
  const group = chatId(place.group);
  return { chat: group, chatThen: group, authorThen, id, alsoKnownAs, group: { ids: [group] } };
}

export const ownSpeaker = (account: LinkedAccount | undefined): Speaker => ({
  chat: SELF_CHAT,
  chatThen: SELF,
  authorThen: SELF,
  id: userId(SELF),
  alsoKnownAs: ownIds(account).map(userId),
});

/** A row with the content of its message. */
export type ReadMessage = {
  readonly row: LedgerRow;
  readonly reading: WhatsAppReading | undefined;
  /** What it does to an earlier message. */
  readonly sign: WhatsAppSign | undefined;
};

type Circumstances = {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly maxAgeMs: number;
  /** The owner answers in this chat by hand until then; epoch milliseconds. */
  readonly ownerUntil: number;
  readonly own: LinkedAccount | undefined;
  /** The agent sent the quoted message. */
  readonly isQuoteOurs: boolean;
  /** Why it is only recorded, in any case. */
  readonly gate?: string | undefined;
};

export function entryOfRow(
  read: ReadMessage,
  speaker: Speaker,
  circumstances: Circumstances,
): InboundEntry {
  const { row, reading, sign } = read;
  const { own } = circumstances;
  const { text = '', attachments: files } = reading ?? {};
  const message: InboundMessage = {
    id: whatsappMessageId(speaker.chatThen, row.key.id, speaker.authorThen),
    chat: { channel: WHATSAPP, account: DEFAULT_ACCOUNT, chat: speaker.chat },
    sender: personSender(speaker.id, nameOf(row), speaker.alsoKnownAs),
    addressing: addressingOf(read, speaker, circumstances),
    group: speaker.group,
    text: speaker.group === undefined ? text : withoutOwnName(text, own),
    attachments: files && filesOfMessage(files, row.key),
    mayContinue: files && reading?.isOfAlbum,
    ...quoteOf(read, speaker, circumstances),
    ...signFields(sign, speaker),
    sentAt: row.sentAt,
    receivedAt: row.receivedAt,
  };
  return entryOf(message, circumstances.gate ?? gateOf(read, circumstances));
}

const NOBODY = 'unknown';
const ME = '@you';

/** A record of a row whose sender or chat cannot be determined; not answered. */
export function unreadableEntry({ key, sentAt, receivedAt }: LedgerRow): InboundEntry {
  const message: InboundMessage = {
    id: whatsappMessageId(NOBODY, key.id, NOBODY),
    chat: { channel: WHATSAPP, account: DEFAULT_ACCOUNT, chat: chatId(NOBODY) },
    sender: personSender(undefined),
    addressing: 'ambient',
    text: '',
    sentAt,
    receivedAt,
  };
  return entryOf(message, 'sender not readable');
}

/** The first reason why the agent does not answer this. */
function gateOf(
  { row, reading, sign }: ReadMessage,
  { now, maxAgeMs, ownerUntil }: Circumstances,
): string | undefined {
  if (row.sentAt < now - maxAgeMs) return 'too old';
  if (reading === undefined && sign === undefined) return 'nothing to read';
  if (reading?.isEdit && sign === undefined) return 'edited';
  return row.sentAt <= ownerUntil ? 'the owner answers here' : undefined;
}

/** In a group: it mentions the account, or answers or changes a message of the agent. */
function addressingOf(
  { reading, sign }: ReadMessage,
  { group }: Speaker,
  { own, isQuoteOurs }: Circumstances,
): InboundMessage['addressing'] {
  if (group === undefined) return 'direct';
  if (sign !== undefined && sign.kind !== 'edited') return 'reply';
  if (reading?.mentioned?.some((jid) => isOwnAddress(jid, own))) return 'mention';
  const author = parseJid(reading?.quoted?.authorJid);
  return isQuoteOurs && isPerson(author) && isOwnAddress(author, own) ? 'reply' : 'ambient';
}

/**
 * The text without the account's name in front, so that a command after it is recognised; elsewhere
 * with a word for it in place of its id.
 */
function withoutOwnName(text: string, own: LinkedAccount | undefined): string {
  const names = ownIds(own).map((id) => `@${id}`);
  const trimmed = text.trimStart();
  const first = names.find((name) => trimmed.startsWith(name));
  const rest = first === undefined ? text : trimmed.slice(first.length).replace(/^[\s,:]+/, '');
  return names.reduce((all, name) => all.replaceAll(name, ME), rest === '' ? text : rest);
}

/** An edit is of a message of the same person in this chat, a reaction to one of the agent. */
function signFields(
  sign: WhatsAppSign | undefined,
  { chatThen, authorThen }: Speaker,
): Pick<InboundMessage, 'amends' | 'reaction'> {
  if (sign === undefined) return {};
  if (sign.kind === 'reacted') return { reaction: { to: nativeId(sign.id), emoji: sign.emoji } };
  return { amends: { id: whatsappMessageId(chatThen, sign.id, authorThen), kind: sign.kind } };
}

/** What the message answers. */
function quoteOf(
  { row, reading }: ReadMessage,
  speaker: Speaker,
  { own, isQuoteOurs }: Circumstances,
): Pick<InboundMessage, 'quoted' | 'replyTo'> {
  const quote = reading?.quoted;
  if (quote === undefined) return {};
  const author = parseJid(quote.authorJid);
  const isByOwner = isPerson(author) && isOwnAddress(author, own);
  const isByThem = isPerson(author) && !isByOwner && speaker.group === undefined;
  const name = isQuoteOurs ? OURSELVES : isByThem ? nameOf(row) : undefined;
  const quotedAuthor = isQuoteOurs || speaker.id === SELF ? SELF : speaker.authorThen;
  const isKnown = isQuoteOurs || isByThem || speaker.id === SELF;
  const { text } = quote;
  const sentAs = isQuoteOurs ? nativeId(quote.id) : undefined;
  return {
    quoted: text === undefined ? undefined : { text, author: name, sentAs },
    replyTo: isKnown ? whatsappMessageId(speaker.chatThen, quote.id, quotedAuthor) : undefined,
  };
}

const MAX_NAME_CHARS = 100;

/** The name that people choose for themselves: shown, never trusted. */
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
