// Who is who on WhatsApp: one person may be seen under a LID, under a phone number, or under both.
// Pure decisions over what is stored: one chat per person, chosen at first contact and kept; a number
// can move to somebody else, a LID never does.

import { addressOf, type PersonJid, personOfId } from './jid.ts';

export type PersonRecord = {
  /** The name of the conversation; stays when ids are learned or change. */
  readonly chat: string;
  /** As ids of people are spelled. */
  readonly number?: string;
  readonly lid?: string;
  /** The address an answer goes to. */
  readonly answerTo: string;
  /** Epoch milliseconds of the first contact. */
  readonly since: number;
  /** Whether they ever wrote to us. */
  readonly wrote: boolean;
  readonly name?: string;
  /** Chats that became part of this one, newest first. */
  readonly joined?: readonly JoinedChat[];
};

type JoinedChat = {
  readonly chat: string;
  /** Whoever was seen under one of these was in that chat. */
  readonly ids: readonly string[];
  /** Epoch milliseconds. */
  readonly at: number;
};

export type Sighting = {
  /** At least one of the two; vouched for by the server. */
  readonly number?: string;
  readonly lid?: string;
  readonly address: PersonJid;
  /** `wrote`: a message to us. `written_to`: from the owner's hand. `seen`: elsewhere. */
  readonly role: 'wrote' | 'written_to' | 'seen';
  readonly name?: string;
  /** Epoch milliseconds. */
  readonly at: number;
};

export type KnownPeople = { readonly byNumber?: PersonRecord; readonly byLid?: PersonRecord };

/** All that changes; to be stored at once. */
export type Placement = {
  readonly person: PersonRecord;
  /** Its chat is part of `person`'s from now on. */
  readonly joined?: PersonRecord;
  /** Lost its number to `person`. */
  readonly bereft?: PersonRecord;
};

export const idsOfRecord = ({ number, lid }: Pick<PersonRecord, 'number' | 'lid'>) =>
  [number, lid].filter((id) => id !== undefined);

/** Whether the sighting is of nobody stored, so that `place` needs a name for a new chat. */
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

/** Numbers are given to new owners: the LID tells them apart. */
function isSomebodyElse(byNumber: PersonRecord, lid: string | undefined): boolean {
  return lid !== undefined && byNumber.lid !== undefined && byNumber.lid !== lid;
}

function newcomer(sighting: Sighting, chat: string): PersonRecord {
  const { number, lid, address, role, name, at } = sighting;
  return {
    chat,
    ...(number === undefined ? {} : { number }),
    ...(lid === undefined ? {} : { lid }),
    answerTo: addressOf(address),
    since: at,
    wrote: role === 'wrote',
    ...(name === undefined ? {} : { name }),
  };
}

function updated(record: PersonRecord, sighting: Sighting): PersonRecord {
  const { number, lid, address, role, name } = sighting;
  return {
    ...record,
    ...(number === undefined ? {} : { number }),
    ...(lid === undefined ? {} : { lid }),
    ...(role === 'wrote' ? { answerTo: addressOf(address), wrote: true } : {}),
    ...(name === undefined ? {} : { name }),
  };
}

function losing(loser: PersonRecord | undefined, to: PersonRecord): { bereft?: PersonRecord } {
  if (loser === undefined || loser.number !== to.number) return {};
  const { number: _, ...rest } = loser;
  const home = personOfId(loser.lid ?? '');
  return { bereft: home === undefined ? rest : { ...rest, answerTo: addressOf(home) } };
}

function join(older: PersonRecord, younger: PersonRecord, at: number): PersonRecord {
  const part: JoinedChat = { chat: younger.chat, ids: idsOfRecord(younger), at };
  return {
    ...younger,
    ...older,
    wrote: older.wrote || younger.wrote,
    joined: [part, ...(younger.joined ?? []), ...(older.joined ?? [])],
  };
}

/**
 * The chat in which a message of that time was known, so that one that comes again is recognised
 * although its chat was joined into another since.
 */
export function chatOfMessage(record: PersonRecord, seenAs: string, sentAt: number): string {
  const parts = (record.joined ?? []).filter(({ ids, at }) => sentAt <= at && ids.includes(seenAs));
  return parts.at(-1)?.chat ?? record.chat;
}

/** All names this conversation ever had. */
export function chatsOf(record: PersonRecord): readonly string[] {
  return [record.chat, ...(record.joined ?? []).map(({ chat }) => chat)];
}
