// The people this account knows, as durable rows: which LID and which number are the same person, the
// one chat of each, and the address an answer goes to. Who is who is decided in core/whatsapp/person.

import { z } from 'zod';
import type { KeyValueChange, KeyValueStore } from '../../kernel/bus/store/store.ts';
import { type ChatId, chatId, type UserId, userId } from '../../kernel/message/ids.ts';
import { createLanes } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { SELF, SELF_CHAT } from './hand-over.ts';
import type { LidDirectory } from './lid-directory.ts';
import { isOwnAddress, type LinkedAccount } from './linked-account.ts';
import { addressOf, idOfPerson, type PersonJid, parseJid, personOfId } from './rules/jid.ts';
import {
  chatOfMessage,
  chatsOf,
  idsOfRecord,
  isNewcomer,
  type KnownPeople,
  type PersonRecord,
  type Placement,
  place,
  type Sighting,
} from './rules/person.ts';
import { storedJson } from './stored-json.ts';

export type Meeting = {
  readonly address: PersonJid;
  /** The same person's other address, where the server said it with the message. */
  readonly alt?: PersonJid;
  readonly role: Sighting['role'];
  readonly name?: string;
};

export type Person = {
  readonly chat: ChatId;
  /** All names this chat ever had. */
  readonly names: readonly ChatId[];
  /** The phone number where it is surely known, else the LID. */
  readonly id: UserId;
  readonly alsoKnownAs: readonly UserId[];
  /** The chat's name at the time of a message, see `chatOfMessage`; epoch milliseconds. */
  chatAt(sentAt: number): string;
};

export interface People {
  /** Who this is. Learns what the meeting tells; somebody only `seen` who is not known is not kept. */
  meet(meeting: Meeting): Promise<Person>;
  /** The owner wrote into the chat with themself, from this address. */
  meetSelf(address: PersonJid): Promise<void>;
  /** Where an answer in this chat goes; undefined for a name that is nobody's. */
  addressOf(chat: ChatId): Promise<string | undefined>;
  /** Whether a message ever came from the other side of this chat. */
  hasWritten(chat: ChatId): Promise<boolean>;
  /** All names of the conversation, the one in use first. */
  namesOf(chat: ChatId): Promise<readonly [ChatId, ...ChatId[]]>;
}

export type PeopleDeps = {
  readonly state: KeyValueStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly directory: LidDirectory;
  /** The linked account: its ids are never other names of somebody else. */
  account(): LinkedAccount | undefined;
};

const personSchema = z.object({
  chat: z.string(),
  number: z.string().exactOptional(),
  lid: z.string().exactOptional(),
  answerTo: z.string(),
  since: z.number(),
  wrote: z.boolean(),
  name: z.string().exactOptional(),
  joined: z
    .array(z.object({ chat: z.string(), ids: z.array(z.string()), at: z.number() }))
    .exactOptional(),
});
/** A chat row: the person, or the chat it was joined into. */
const chatRowSchema = z.union([z.object({ into: z.string() }), personSchema]);

const chatKey = (chat: string) => `person/chat/${chat}`;
const idKey = (id: string) => `person/id/${id}`;
/** Joins make chains only when a person's chats are joined again and again. */
const MAX_STEPS = 10;

export function createPeople(deps: PeopleDeps): People {
  const { state, clock, directory } = deps;
  const lanes = createLanes();

  async function recordOf(chat: string): Promise<PersonRecord | undefined> {
    let name = chat;
    for (let step = 0; step < MAX_STEPS; step += 1) {
      const stored = await state.get(chatKey(name));
      if (stored === undefined) return undefined;
      const row = storedJson(chatRowSchema, stored);
      if (row === undefined) {
        deps.log.error('a stored whatsapp person cannot be read');
        return undefined;
      }
      if (!('into' in row)) return row;
      name = row.into;
    }
    return undefined;
  }

  async function byId(id: string | undefined): Promise<PersonRecord | undefined> {
    const chat = id === undefined ? undefined : await state.get(idKey(id));
    return chat === undefined ? undefined : recordOf(chat);
  }

  async function sightingOf(meeting: Meeting): Promise<Sighting> {
    const { address, role, name } = meeting;
    const other = meeting.alt ?? (await unsaidAlt(address));
    const alt = other === undefined || isOwnAddress(other, deps.account()) ? undefined : other;
    const number = [address, alt].find((jid) => jid?.kind === 'number');
    const lid = [address, alt].find((jid) => jid?.kind === 'lid');
    return {
      ...(number === undefined ? {} : { number: idOfPerson(number) }),
      ...(lid === undefined ? {} : { lid: idOfPerson(lid) }),
      address,
      role,
      ...(name === undefined ? {} : { name }),
      at: clock.now(),
    };
  }

  /** Nothing is looked up for somebody of whom both ids are known. */
  async function unsaidAlt(address: PersonJid): Promise<PersonJid | undefined> {
    const record = await byId(idOfPerson(address));
    const isWhole = record?.number !== undefined && record.lid !== undefined;
    return isWhole ? undefined : directory.otherOf(address);
  }

  async function freeChat(ids: readonly string[]): Promise<string> {
    const [first = ''] = ids;
    for (const id of ids) {
      if ((await state.get(chatKey(id))) === undefined) return id;
    }
    for (let nth = 2; ; nth += 1) {
      const name = `${first}~${nth}`;
      if ((await state.get(chatKey(name))) === undefined) return name;
    }
  }

  async function meet(meeting: Meeting): Promise<PersonRecord> {
    const sighting = await sightingOf(meeting);
    const [byNumber, byLid] = await Promise.all([byId(sighting.number), byId(sighting.lid)]);
    const known: KnownPeople = {
      ...(byNumber === undefined ? {} : { byNumber }),
      ...(byLid === undefined ? {} : { byLid }),
    };
    const isNew = isNewcomer(known, sighting);
    const placement = place(known, sighting, isNew ? await freeChat(idsOfRecord(sighting)) : '');
    if (isNew && sighting.role === 'seen') return placement.person;
    const rows = changedRows(placement, known);
    if (rows.length > 0) await state.setMany(rows);
    return placement.person;
  }

  return {
    meet: (meeting) =>
      lanes.run('people', async () => toPerson(await meet(meeting), idOfPerson(meeting.address))),

    meetSelf: (address) =>
      lanes.run('people', async () => {
        const known = await recordOf(SELF);
        const answerTo = addressOf(address);
        if (known?.answerTo === answerTo) return;
        const since = known?.since ?? clock.now();
        const record: PersonRecord = { chat: SELF, answerTo, since, wrote: true };
        await state.set(chatKey(SELF), JSON.stringify(record));
      }),

    async addressOf(chat) {
      const record = await recordOf(chat);
      if (record !== undefined) return record.answerTo;
      if (chat === SELF_CHAT) return ownAddress(deps.account());
      const person = personOfId(chat);
      if (person !== undefined) return (await byId(chat))?.answerTo ?? addressOf(person);
      return parseJid(chat).kind === 'group' ? chat : undefined;
    },

    hasWritten: async (chat) =>
      chat === SELF_CHAT || ((await recordOf(chat)) ?? (await byId(chat)))?.wrote === true,

    async namesOf(chat) {
      const record = (await recordOf(chat)) ?? (await byId(chat));
      const [current = chat, ...former] = record === undefined ? [] : chatsOf(record).map(chatId);
      return [current, ...former];
    },
  };
}

function ownAddress(own: LinkedAccount | undefined): string | undefined {
  return own === undefined ? undefined : addressOf({ kind: 'number', user: own.number });
}

function toPerson(record: PersonRecord, seenAs: string): Person {
  const [id = seenAs, ...others] = idsOfRecord(record);
  return {
    chat: chatId(record.chat),
    names: chatsOf(record).map(chatId),
    id: userId(id),
    alsoKnownAs: others.map(userId),
    chatAt: (sentAt) => chatOfMessage(record, seenAs, sentAt),
  };
}

/** What differs from what is stored, for one transaction. */
function changedRows(placement: Placement, known: KnownPeople): readonly KeyValueChange[] {
  const { person, joined, bereft } = placement;
  const before = [known.byNumber, known.byLid].filter((record) => record !== undefined);
  const changed = [person, bereft]
    .filter((record) => record !== undefined)
    .filter((record) => !before.some((old) => JSON.stringify(old) === JSON.stringify(record)));
  if (changed.length === 0) return [];
  const kept = idsOfRecord(person);
  const lost = before
    .filter(({ chat }) => chat === person.chat || chat === joined?.chat)
    .flatMap(idsOfRecord)
    .filter((id) => !kept.includes(id));
  return [
    ...changed.map((record) => ({ key: chatKey(record.chat), value: JSON.stringify(record) })),
    ...kept.map((id) => ({ key: idKey(id), value: person.chat })),
    ...lost.map((id) => ({ key: idKey(id), value: undefined })),
    ...(joined === undefined
      ? []
      : [{ key: chatKey(joined.chat), value: JSON.stringify({ into: person.chat }) }]),
  ];
}
