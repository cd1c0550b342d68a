// WhatsApp's addresses ("jids"), people and message ids: `+491511234567` is a phone number,
// `1234@lid` a LID. One person may be seen under either or both and has one chat. The only place
// that parses a jid.

import { z } from 'zod';
import { EVERYBODY } from '../../../kernel/access/admission.ts';
import {
  type ChatId,
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  type MessageId,
  messageId,
} from '../../../kernel/message/ids.ts';

/** A person's address. Neither LID nor number can be derived from the other. */
export type PersonJid = {
  readonly kind: 'number' | 'lid';
  /** Digits. */
  readonly user: string;
  /** Which of the person's devices; 0 is the phone. Never part of an identity. */
  readonly device: number;
};

type WhatsAppJid =
  | PersonJid
  | { readonly kind: 'group'; readonly jid: string }
  | { readonly kind: 'status' }
  | { readonly kind: 'broadcast'; readonly jid: string }
  | { readonly kind: 'newsletter'; readonly jid: string }
  /** Unknown or malformed, e.g. `x@lid@s.whatsapp.net`: identifies nobody. */
  | { readonly kind: 'unreadable' };

const UNREADABLE: WhatsAppJid = { kind: 'unreadable' };
const JID = /^([^@]{1,64})@([a-z.]{1,32})$/;
/** User, an agent part that is not used, device. */
const PERSON_USER = /^(\d{1,20})(?:_\d{1,3})?(?::(\d{1,5}))?$/;
/** E.164: at most 15 digits, not beginning with 0; WhatsApp's own notices come from `0`. */
const NUMBER = /^[1-9]\d{4,14}$/;
const LID = /^[1-9]\d{0,19}$/;
const GROUP = /^\d{1,20}(-\d{1,20})?$/;
const DIGITS = /^\d{1,20}$/;

const NUMBER_SERVERS: readonly string[] = ['s.whatsapp.net', 'c.us', 'hosted'];
const LID_SERVERS: readonly string[] = ['lid', 'hosted.lid'];

export function parseJid(text: string | null | undefined): WhatsAppJid {
  const [, user = '', server = ''] = JID.exec(text ?? '') ?? [];
  if (NUMBER_SERVERS.includes(server)) return personJid('number', user);
  if (LID_SERVERS.includes(server)) return personJid('lid', user);
  const jid = `${user}@${server}`;
  if (server === 'g.us' && GROUP.test(user)) return { kind: 'group', jid };
  if (jid === 'status@broadcast') return { kind: 'status' };
  if (server === 'broadcast' && DIGITS.test(user)) return { kind: 'broadcast', jid };
  if (server === 'newsletter' && DIGITS.test(user)) return { kind: 'newsletter', jid };
  return UNREADABLE;
}

function personJid(kind: PersonJid['kind'], text: string): WhatsAppJid {
  const [, user = '', device = '0'] = PERSON_USER.exec(text) ?? [];
  const isKnownForm = (kind === 'number' ? NUMBER : LID).test(user);
  return isKnownForm ? { kind, user, device: Number(device) } : UNREADABLE;
}

export function isPerson(jid: WhatsAppJid): jid is PersonJid {
  return jid.kind === 'number' || jid.kind === 'lid';
}

/** The person's id in the configuration's spelling. */
export function idOfPerson({ kind, user }: Pick<PersonJid, 'kind' | 'user'>): string {
  return kind === 'number' ? `+${user}` : `${user}@lid`;
}

/** The person of an id; undefined for every other text. */
export function personOfId(id: string): PersonJid | undefined {
  const jid = parseJid(id.startsWith('+') ? `${id.slice(1)}@s.whatsapp.net` : id);
  if (!isPerson(jid)) return undefined;
  return idOfPerson(jid) === id ? jid : undefined;
}

/** The address of all the person's devices. */
export function addressOf({ kind, user }: Pick<PersonJid, 'kind' | 'user'>): string {
  return `${user}@${kind === 'number' ? 's.whatsapp.net' : 'lid'}`;
}

/**
 * Whether both name the same person or group, whatever the device. A LID and a number never match
 * by their digits.
 */
export function isSameAddress(left: string | undefined, right: string | undefined): boolean {
  const [a, b] = [parseJid(left), parseJid(right)];
  if (isPerson(a) && isPerson(b)) return a.kind === b.kind && a.user === b.user;
  return a.kind === 'group' && b.kind === 'group' && a.jid === b.jid;
}

/** Characters that people put between the digits of a phone number. */
const NUMBER_FILLERS = /[\s\u200e\u200f\u202a-\u202e./()-]/g;
/** The number by which an account can be linked: E.164 with its country code. */
const ACCOUNT_NUMBER = /^[1-9]\d{7,14}$/;
/** Omitted after a country code, as in `+49 (0) 151`. */
const TRUNK_PREFIX = /(?<=\d\s*)\(\s*0\s*\)/g;

/**
 * The canonical spelling of an entry of `allowFrom`: `+49 151/123-45` and `0049...` become
 * `+4915112345`, LIDs lose their device. Everything else is only trimmed, see `isAllowEntry`; so is
 * a number without a country code, which would let in somebody else.
 */
export function normaliseAllowed(entry: string): string {
  const trimmed = entry.trim();
  if (trimmed.includes('@')) {
    const jid = parseJid(trimmed.toLowerCase());
    return isPerson(jid) ? idOfPerson(jid) : trimmed;
  }
  const plain = trimmed.replace(TRUNK_PREFIX, '').replace(NUMBER_FILLERS, '');
  const digits = /^(?:\+|00)(\d+)$/.exec(plain)?.[1] ?? '';
  return NUMBER.test(digits) ? `+${digits}` : trimmed;
}

/** Whether this entry can let somebody in. */
export function isAllowEntry(entry: string): boolean {
  const normal = normaliseAllowed(entry);
  return normal === EVERYBODY || personOfId(normal) !== undefined;
}

/** An account's number, with or without its plus, as digits; undefined if invalid. */
export function phoneDigits(text: string): string | undefined {
  const plain = text.replace(NUMBER_FILLERS, '').replace(/^(?:\+|00)/, '');
  return ACCOUNT_NUMBER.test(plain) ? plain : undefined;
}

// Identities on WhatsApp: one person may be seen under a LID, under a phone number, or under both.
// Pure decisions over stored rows: one chat per person, chosen at first contact and kept; a number
// can move to another person, a LID never does.

const joinedChatSchema = z
  .object({
    chat: z.string(),
    /** A person seen under one of these was in that chat. */
    ids: z.array(z.string()).readonly(),
    /** Epoch milliseconds. */
    at: z.number(),
  })
  .readonly();

export const personSchema = z
  .object({
    /** The name of the conversation; stays when ids are learned or change. */
    chat: z.string(),
    /** In the spelling of people's ids. */
    number: z.string().optional(),
    lid: z.string().optional(),
    /** The address for answers. */
    answerTo: z.string(),
    /** Epoch milliseconds of the first contact. */
    since: z.number(),
    /** Whether they ever wrote to the account. */
    wrote: z.boolean(),
    name: z.string().optional(),
    /** Chats that became part of this one, newest first. */
    joined: z.array(joinedChatSchema).readonly().optional(),
  })
  .readonly();
export type PersonRecord = z.infer<typeof personSchema>;

export type Sighting = {
  /** At least one of the two; vouched for by the server. */
  readonly number?: string | undefined;
  readonly lid?: string | undefined;
  readonly address: PersonJid;
  /** `wrote`: to the account. `written_to`: by the owner's hand. `seen`: elsewhere. */
  readonly role: 'wrote' | 'written_to' | 'seen';
  readonly name?: string | undefined;
  /** Epoch milliseconds. */
  readonly at: number;
};

export type KnownPeople = {
  readonly byNumber: PersonRecord | undefined;
  readonly byLid: PersonRecord | undefined;
};

/** All changes; stored together. */
export type Placement = {
  readonly person: PersonRecord;
  /** Its chat is part of `person`'s from now on. */
  readonly joined?: PersonRecord;
  /** Lost its number to `person`. */
  readonly bereft?: PersonRecord;
};

export const idsOfRecord = ({ number, lid }: Pick<PersonRecord, 'number' | 'lid'>) =>
  [number, lid].filter((id) => id !== undefined);

/** Whether the sighting matches no stored person, so that `place` needs a name for a new chat. */
export function isNewcomer({ byLid, byNumber }: KnownPeople, { lid }: Sighting): boolean {
  return byLid === undefined && (byNumber === undefined || isSomebodyElse(byNumber, lid));
}

/** `newChat` is used for a newcomer only. */
export function place(known: KnownPeople, sighting: Sighting, newChat: string): Placement {
  const { byLid, byNumber } = known;
  if (isNewcomer(known, sighting)) {
    const person = newcomer(sighting, newChat);
    return { person, ...losing(byNumber, person) };
  }
  if (byLid === undefined || byNumber === undefined || byLid.chat === byNumber.chat) {
    return { person: updated(byLid ?? byNumber ?? newcomer(sighting, newChat), sighting) };
  }
  if (isSomebodyElse(byNumber, sighting.lid)) {
    const person = updated(byLid, sighting);
    return { person, ...losing(byNumber, person) };
  }
  const [older, younger] = byNumber.since < byLid.since ? [byNumber, byLid] : [byLid, byNumber];
  return { person: updated(join(older, younger, sighting.at), sighting), joined: younger };
}

/** Numbers are reassigned to new owners: the LID distinguishes them. */
function isSomebodyElse(byNumber: PersonRecord, lid: string | undefined): boolean {
  return lid !== undefined && byNumber.lid !== undefined && byNumber.lid !== lid;
}

function newcomer(sighting: Sighting, chat: string): PersonRecord {
  const { number, lid, address, role, name, at } = sighting;
  const answerTo = addressOf(address);
  return { chat, number, lid, answerTo, since: at, wrote: role === 'wrote', name };
}

function updated(record: PersonRecord, sighting: Sighting): PersonRecord {
  const { number, lid, name } = record;
  const answer = { answerTo: addressOf(sighting.address), wrote: true };
  return {
    ...record,
    number: sighting.number ?? number,
    lid: sighting.lid ?? lid,
    ...(sighting.role === 'wrote' ? answer : {}),
    name: sighting.name ?? name,
  };
}

function losing(loser: PersonRecord | undefined, to: PersonRecord): { bereft?: PersonRecord } {
  if (loser === undefined || loser.number !== to.number) return {};
  const { number: _, ...rest } = loser;
  const home = personOfId(loser.lid ?? '');
  return { bereft: home === undefined ? rest : { ...rest, answerTo: addressOf(home) } };
}

function join(older: PersonRecord, younger: PersonRecord, at: number): PersonRecord {
  const part = { chat: younger.chat, ids: idsOfRecord(younger), at };
  return {
    ...younger,
    ...older,
    wrote: older.wrote || younger.wrote,
    joined: [part, ...(younger.joined ?? []), ...(older.joined ?? [])],
  };
}

/**
 * The name of the chat at the time of a message, so that a repeated message is recognised although
 * its chat was joined into another since.
 */
export function chatOfMessage(record: PersonRecord, seenAs: string, sentAt: number): string {
  const parts = (record.joined ?? []).filter(({ ids, at }) => sentAt <= at && ids.includes(seenAs));
  return parts.at(-1)?.chat ?? record.chat;
}

/** All names this conversation ever had. */
export function chatsOf(record: PersonRecord): readonly string[] {
  return [record.chat, ...(record.joined ?? []).map(({ chat }) => chat)];
}

// WhatsApp's ids. The sender of a message chooses its id, so it is unique only together with the
// chat and the author.

export const WHATSAPP = channelName('whatsapp');

/** The chat of the account's owner with themself, and the owner as an author. */
export const SELF = 'self';
export const SELF_CHAT: ChatId = chatId(SELF);

/** `whatsapp:default:<chat>/<id>/<author>`; the author is a person's chat or `self`. */
export function whatsappMessageId(chat: string, id: string, author: string): MessageId {
  const name = encodeURIComponent(id.toWellFormed());
  return messageId(`${WHATSAPP}:${DEFAULT_ACCOUNT}:${chat}/${name}/${author}`);
}

/** The parts of a message's id. */
export type WhatsAppName = {
  readonly chat: ChatId;
  readonly id: string;
  /** The chat of its author. */
  readonly author: ChatId;
};

/** Undefined for an id of another channel. */
export function whatsappNameOf(message: MessageId): WhatsAppName | undefined {
  const prefix = `${WHATSAPP}:${DEFAULT_ACCOUNT}:`;
  if (!message.startsWith(prefix)) return undefined;
  const [chat, id, author, ...more] = message.slice(prefix.length).split('/');
  if (!chat || !id || !author || more.length > 0) return undefined;
  return { chat: chatId(chat), id: decodeURIComponent(id), author: chatId(author) };
}
