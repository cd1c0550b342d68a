// People over all their doors: whose message it is, what they are to the agent, and what is kept of
// them. Asked at every message from memory; written only when a person shows something new.

import { createHash } from 'node:crypto';
import {
  type ConfiguredGate,
  configuredRole,
  joinRoles,
  type Role,
} from '../../kernel/access/admission.ts';
import {
  doorOf,
  isSameChat,
  mergePersons,
  type Person,
  type PersonDoor,
  type PersonRecord,
  withDoor,
  withoutDoor,
} from '../../kernel/access/person.ts';
import type { KeyValueChange } from '../../kernel/bus/store/store.ts';
import {
  type AccountId,
  type ChannelName,
  type PersonId,
  personId,
  type UserId,
} from '../../kernel/message/ids.ts';
import { type ChatRef, type InboundMessage, idsOf } from '../../kernel/message/message.ts';
import { shortName } from '../../kernel/message/untrusted.ts';
import { createLanes } from '../../lib/async.ts';
import { doorKey, type PeopleBook, type PeopleRows, ROWS } from './people-book.ts';

/** Beyond that nobody new is kept: an open door must not fill the store. */
const MAX_PERSONS = 10_000;

/** A door of our own: whoever comes in by one of them is the same person. */
export type OwnDoor = {
  readonly channel: ChannelName;
  /** Of its one person. */
  readonly id: UserId;
  /** Whether its chats outlive the process that shows them. */
  readonly lasts: boolean;
};

export type PersonsDeps = {
  readonly book: PeopleBook;
  readonly ownDoors: readonly OwnDoor[];
  readonly policy: GateOf;
};

export interface Persons {
  /** Who is surely known by one of these ids. */
  of(channel: string, ids: readonly string[]): Promise<Person | undefined>;
  /** Whose message it is; undefined for our own machinery in a chat that is nobody's. */
  author(message: Pick<InboundMessage, 'sender' | 'chat'>): Promise<Person | undefined>;
  /** Whose chat with the agent this is. */
  inChat(chat: ChatRef): Promise<Person | undefined>;
  /** What the sender is to the agent by anything but the message's own channel's configuration. */
  roleIn(message: Pick<InboundMessage, 'sender' | 'chat'>): Promise<Role | undefined>;
  /** Keeps what a message between the two of us shows of its sender. */
  seen(message: InboundMessage): Promise<void>;
  get(id: string): Promise<Person | undefined>;
  list(): Promise<readonly Person[]>;
  change(id: PersonId, change: (record: PersonRecord) => PersonRecord): Promise<Person | undefined>;
  /** Whom an id of ours, an id of a channel or a name means. */
  find(typed: string): Promise<readonly Person[]>;
  /** One person of two: the second record is gone. Other rows are written with it. */
  merge(
    first: PersonId,
    second: PersonRecord,
    alongside?: readonly KeyValueChange[],
  ): Promise<Person | undefined>;
  /**
   * Makes the sender, who was just paired as owner, and the one person of our own channels one person;
   * not where those belong to somebody with another channel already.
   */
  joinOwnDoors(message: InboundMessage): Promise<void>;
  /**
   * Takes a door off its person. `only`: it is the last one; `needed`: without it the others would
   * not be let in as before.
   */
  unlink(id: PersonId, channel: string): Promise<'done' | 'only' | 'needed' | 'unknown'>;
  forget(id: PersonId): Promise<boolean>;
}

export function createPersons({ book, ownDoors, policy }: PersonsDeps): Persons {
  /** Two messages at once must not undo each other's change. */
  const lanes = createLanes();
  const oneByOne = <T>(task: () => Promise<T>) => lanes.run('persons', task);

  function withRole(rows: PeopleRows, record: PersonRecord): Person {
    return { ...record, role: roleOf(rows, record.doors, policy) };
  }

  async function of(channel: string, ids: readonly string[]) {
    const rows = await book.rows();
    const record = recordOf(rows, channel, ids);
    return record === undefined ? undefined : withRole(rows, record);
  }

  async function inChat(chat: ChatRef) {
    const rows = await book.rows();
    for (const record of rows.persons.values()) {
      if (record.doors.some((door) => isSameChat(door.chat, chat))) return withRole(rows, record);
    }
    return undefined;
  }

  /** What a message shows of a person. */
  function shown(message: Pick<InboundMessage, 'sender' | 'chat'>, hasChat: boolean) {
    const { sender, chat } = message;
    if (sender.kind !== 'person') return undefined;
    const own = ownDoors.find(({ channel }) => channel === chat.channel);
    const ids = idsOf(sender);
    const isKept = hasChat && (own?.lasts ?? true);
    const door: PersonDoor = { channel: chat.channel, ids, ...(isKept ? { chat } : {}) };
    const others = own === undefined ? [] : ownDoors.filter((each) => each !== own);
    return { name: shortName(sender.name), door, others: others.map((each) => ({ ...each, ids })) };
  }

  function fresh({ name, door, others }: NonNullable<ReturnType<typeof shown>>): PersonRecord {
    const [first] = [door, ...others].sort((a, b) => a.channel.localeCompare(b.channel));
    const more = others.map(({ channel, ids }): PersonDoor => ({ channel, ids }));
    const id = newId(first?.channel ?? door.channel, door.ids);
    return { id, name, doors: [door, ...more], conversations: 'each' };
  }

  async function author(message: Pick<InboundMessage, 'sender' | 'chat'>) {
    const { sender, chat } = message;
    const seen = shown(message, false);
    if (seen === undefined || sender.kind !== 'person') return inChat(chat);
    const known =
      sender.verified === 'unverified' ? undefined : await of(chat.channel, idsOf(sender));
    return known ?? withRole(await book.rows(), fresh(seen));
  }

  async function keep(message: InboundMessage) {
    const seen = shown(message, true);
    const rows = await book.rows();
    if (seen === undefined) return;
    const known = recordOf(rows, message.chat.channel, seen.door.ids);
    if (known === undefined && rows.persons.size >= MAX_PERSONS) return;
    const record = known ?? fresh(seen);
    const named = record.name === '' && seen.name !== '' ? { ...record, name: seen.name } : record;
    const next = withDoor(named, seen.door);
    const doubles = doublesOf(rows, message.chat.channel, seen.door.ids, record.id);
    if (next === known && doubles.length === 0) return;
    await book.write([personRow(next), ...doubles.map(goneRow)]);
  }

  return {
    of,
    author,
    inChat,
    async roleIn({ sender, chat }) {
      if (sender.kind !== 'person') return undefined;
      const rows = await book.rows();
      const ids = idsOf(sender);
      const own = decidedOf(rows, chat.channel, ids);
      const record = recordOf(rows, chat.channel, ids);
      if (record === undefined) return own;
      // Who is listed for one account of this channel is not for the others.
      const here: GateOf = (channel) =>
        channel === chat.channel ? policy(channel, chat.account) : policy(channel);
      const role = roleOf(rows, record.doors, here);
      // Nobody vouches that it is them: no door but this one counts, unless they are blocked.
      if (sender.verified === 'unverified') return role === 'blocked' ? role : own;
      return role;
    },
    async seen(message) {
      const { sender, addressing, chat } = message;
      if (sender.kind !== 'person' || addressing !== 'direct') return;
      if (sender.verified === 'unverified') return;
      const rows = await book.rows();
      const known = recordOf(rows, chat.channel, idsOf(sender));
      const door = known?.doors.find(({ channel }) => channel === chat.channel);
      const isOwn = ownDoors.some(({ channel, lasts }) => channel === chat.channel && !lasts);
      const hasIds = door !== undefined && idsOf(sender).every((id) => door.ids.includes(id));
      const isOne = known !== undefined && !hasDoubles(rows, chat.channel, idsOf(sender));
      if (isOne && hasIds && known.name !== '' && (isOwn || isSameChat(door.chat, chat))) return;
      await oneByOne(() => keep(message));
    },
    async get(id) {
      const rows = await book.rows();
      const record = rows.persons.get(personId(id));
      return record === undefined ? undefined : withRole(rows, record);
    },
    async find(typed) {
      const rows = await book.rows();
      const meant = typed.trim().toLowerCase();
      const records = [...rows.persons.values()];
      const isMeant = ({ id, doors }: PersonRecord) =>
        id === meant || doors.some(({ ids }) => ids.some((own) => own.toLowerCase() === meant));
      const byId = records.filter(isMeant);
      const byName = records.filter(({ name }) => name.toLowerCase() === meant);
      return (byId.length > 0 ? byId : byName).map((record) => withRole(rows, record));
    },
    async list() {
      const rows = await book.rows();
      return [...rows.persons.values()].map((record) => withRole(rows, record));
    },
    change: (id, change) =>
      oneByOne(async () => {
        const record = (await book.rows()).persons.get(id);
        if (record === undefined) return undefined;
        const next = change(record);
        await book.write([personRow(next)]);
        return withRole(await book.rows(), next);
      }),
    merge: (first, second, alongside = []) =>
      oneByOne(async () => {
        const one = (await book.rows()).persons.get(first);
        if (one === undefined || one.id === second.id) return undefined;
        const next = mergePersons(one, second);
        // Deleted before, so that the ids belong to the one that stays.
        await book.write([goneRow(second), personRow(next), ...alongside]);
        return withRole(await book.rows(), next);
      }),
    joinOwnDoors: (message) =>
      oneByOne(async () => {
        const rows = await book.rows();
        const seen = shown(message, true);
        if (seen === undefined) return;
        const known = recordOf(rows, message.chat.channel, seen.door.ids);
        const paired = withDoor(known ?? fresh(seen), seen.door);
        const isOurs = ({ channel }: PersonDoor) => ownDoors.some((own) => own.channel === channel);
        const own = ownDoors.flatMap(({ channel, id }) => recordOf(rows, channel, [id]) ?? [])[0];
        if (own?.doors.every(isOurs) === false || paired.doors.some(isOurs)) return;
        const joined = own === undefined ? paired : mergePersons(own, paired);
        const next = ownDoors.reduce<PersonRecord>(
          (person, { channel, id }) => withDoor(person, { channel, ids: [id] }),
          joined,
        );
        const double = known === undefined || known.id === next.id ? [] : [goneRow(known)];
        await book.write([...double, personRow(next)]);
      }),
    unlink: (id, channel) =>
      oneByOne(async () => {
        const rows = await book.rows();
        const record = rows.persons.get(id);
        if (record === undefined || doorOf(record, channel) === undefined) return 'unknown';
        const own = ownDoors.map((door) => door.channel as string);
        const gone = own.includes(channel) ? own : [channel];
        const next = gone.reduce<PersonRecord | undefined>(
          (left, each) => left && withoutDoor(left, each),
          record,
        );
        if (next === undefined) return 'only';
        const isSame = roleOf(rows, next.doors, policy) === roleOf(rows, record.doors, policy);
        if (!isSame) return 'needed';
        const off = record.doors.filter((door) => gone.includes(door.channel));
        await book.write([personRow(next), ...apartRows(rows, record, off)]);
        return 'done';
      }),
    forget: (id) =>
      oneByOne(async () => {
        const record = (await book.rows()).persons.get(id);
        if (record !== undefined) await book.write([goneRow(record)]);
        return record !== undefined;
      }),
  };
}

// Finding people in the rows about them, and the rows that keep them.

const ID_CHARS = 12;

/** The configured part of the gate, per channel. */
/** Without an account: the most that any of the channel's gives. */
export type GateOf = (channel: string, account?: AccountId) => ConfiguredGate;

export const personRow = (record: PersonRecord): KeyValueChange => ({
  key: ROWS.person(record.id),
  value: JSON.stringify({ ...record, role: undefined }),
});

export const goneRow = ({ id }: Pick<PersonRecord, 'id'>): KeyValueChange => ({
  key: ROWS.person(id),
  value: undefined,
});

/** The same for the same door, so that a repeat makes no second person; tells nothing about it. */
export function newId(channel: string, ids: readonly UserId[]): PersonId {
  const hash = createHash('sha256').update(doorKey(channel, ids[0] ?? ''));
  return personId(`p${hash.digest('hex').slice(0, ID_CHARS)}`);
}

/** Doors taken off a person keep what an owner allows whoever comes in by them. */
export function apartRows(
  rows: PeopleRows,
  { name, limits }: PersonRecord,
  doors: readonly PersonDoor[],
): readonly KeyValueChange[] {
  const [first] = doors;
  if (limits === undefined || first === undefined) return [];
  const { channel, ids } = first;
  const id = [newId(channel, ids), newId(`${channel}+`, ids)].find((one) => !rows.persons.has(one));
  if (id === undefined) return [];
  return [personRow({ id, name, doors, conversations: 'each', limits })];
}

/** Records that share one of the ids, joined: a platform may show two ids of one person late. */
export function recordOf(rows: PeopleRows, channel: string, ids: readonly string[]) {
  const [first, ...others] = recordsOf(rows, channel, ids);
  return first === undefined ? undefined : others.reduce(mergePersons, first);
}

export function doublesOf(
  rows: PeopleRows,
  channel: string,
  ids: readonly string[],
  kept: PersonId,
) {
  return recordsOf(rows, channel, ids).filter(({ id }) => id !== kept);
}

/** Whether two records turned out to be one person. */
export function hasDoubles(rows: PeopleRows, channel: string, ids: readonly string[]): boolean {
  return ids.length > 1 && recordsOf(rows, channel, ids).length > 1;
}

function recordsOf(rows: PeopleRows, channel: string, ids: readonly string[]) {
  const found = new Set(ids.flatMap((id) => rows.owners.get(doorKey(channel, id)) ?? []));
  return [...found].flatMap((id) => rows.persons.get(id) ?? []);
}

export function decidedOf(
  rows: PeopleRows,
  channel: string,
  ids: readonly string[],
): Role | undefined {
  return joinRoles(ids.map((id) => rows.approvals.get(doorKey(channel, id))?.role));
}

/** The most that any door gives: what was decided there, else what is configured; a block stands. */
export function roleOf(
  rows: PeopleRows,
  doors: readonly PersonDoor[],
  gateOf: GateOf,
): Role | undefined {
  const roles = doors.map(
    ({ channel, ids }) => decidedOf(rows, channel, ids) ?? configuredRole(ids, gateOf(channel)),
  );
  return joinRoles(roles);
}
