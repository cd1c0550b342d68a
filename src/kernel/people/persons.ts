// People over all their channels: whose message it is, what they are to the agent, and what is kept of
// them. Asked at every message from memory; written only when a person shows something new.

import { createHash } from 'node:crypto';
import { type ConfiguredGate, configuredRole, joinRoles, type Role } from '../access/admission.ts';
import {
  isSameChat,
  mergePersons,
  type Person,
  type PersonChannel,
  type PersonLimits,
  type PersonRecord,
  personChannelOf,
  withoutPersonChannel,
  withPersonChannel,
} from '../access/person.ts';
import type { ApprovalPolicy } from '../access/rights.ts';
import type { RowWrite } from '../bus/bus.ts';
import {
  type AccountId,
  type ChannelName,
  type PersonId,
  personId,
  type UserId,
} from '../message/ids.ts';
import { type ChatRef, type InboundMessage, idsOf } from '../message/message.ts';
import { shortName } from '../message/untrusted.ts';
import { type KnownPeople, type PeopleRows, personIdKey } from './people-rows.ts';

/** Beyond that nobody new is kept: an open channel must not fill the store. */
const MAX_PERSONS = 10_000;

/** A channel of our own: everybody who uses one of them is the same person. */
export type LocalChannelSpec = {
  readonly channel: ChannelName;
  /** Of its one person. */
  readonly id: UserId;
  /** Whether its chats outlive the process that shows them. */
  readonly lasts: boolean;
};

export type PersonsDeps = {
  readonly peopleRows: PeopleRows;
  readonly localChannels: readonly LocalChannelSpec[];
  readonly policy: GateOf;
};

type Sent = Pick<InboundMessage, 'sender' | 'chat'>;

export type Persons = ReturnType<typeof createPersons>;

export function createPersons({ peopleRows, localChannels, policy }: PersonsDeps) {
  const { persons } = peopleRows;
  const withRole = (known: KnownPeople, record: PersonRecord): Person => ({
    ...record,
    role: roleOf(known, record.doors, policy),
  });
  const isOurs = ({ channel }: PersonChannel) =>
    localChannels.some((own) => own.channel === channel);
  const removed = ({ id }: Pick<PersonRecord, 'id'>) => persons.write(id, undefined);

  /** What a message shows of a person. */
  function shown({ sender, chat }: Sent, hasChat: boolean) {
    if (sender.kind !== 'person') return undefined;
    const own = localChannels.find(({ channel }) => channel === chat.channel);
    const ids = idsOf(sender);
    const isKept = hasChat && (own?.lasts ?? true);
    const door: PersonChannel = { channel: chat.channel, ids, ...(isKept ? { chat } : {}) };
    const others = own === undefined ? [] : localChannels.filter((each) => each !== own);
    return { name: shortName(sender.name), door, others: others.map((each) => ({ ...each, ids })) };
  }

  function fresh({ name, door, others }: NonNullable<ReturnType<typeof shown>>): PersonRecord {
    const [first] = [door, ...others].sort((a, b) => a.channel.localeCompare(b.channel));
    const more = others.map(({ channel, ids }): PersonChannel => ({ channel, ids }));
    const id = newId(first?.channel ?? door.channel, door.ids);
    return { id, name, doors: [door, ...more], conversations: 'each' };
  }

  /** Who is surely known by one of these ids. */
  async function of(channel: string, ids: readonly string[]): Promise<Person | undefined> {
    const known = await peopleRows.known();
    const record = recordOf(known, channel, ids);
    return record && withRole(known, record);
  }

  /** Whose chat with the agent this is. */
  async function inChat(chat: ChatRef): Promise<Person | undefined> {
    const known = await peopleRows.known();
    const isIts = ({ doors }: PersonRecord) => doors.some((door) => isSameChat(door.chat, chat));
    const record = known.persons.values().find(isIts);
    return record && withRole(known, record);
  }

  async function keep(message: InboundMessage): Promise<void> {
    const seen = shown(message, true);
    if (seen === undefined) return;
    const known = await peopleRows.known();
    const [first, ...doubles] = recordsOf(known, message.chat.channel, seen.door.ids);
    if (first === undefined && known.persons.size >= MAX_PERSONS) return;
    const start = first ?? fresh(seen);
    await persons.change(
      start.id,
      // A person who was known and was removed meanwhile does not come back by this.
      (stored = first === undefined ? start : undefined) => {
        if (stored === undefined) return undefined;
        const record = doubles.reduce(mergePersons, stored);
        const isNamed = record.name !== '' || seen.name === '';
        return withPersonChannel(isNamed ? record : { ...record, name: seen.name }, seen.door);
      },
      () => doubles.map(removed),
    );
  }

  /** The person without the channel; without one of our own channels, without all of them. */
  function parted(known: KnownPeople, record: PersonRecord | undefined, channel: string) {
    if (record === undefined || personChannelOf(record, channel) === undefined) return 'unknown';
    const own = localChannels.map((door) => door.channel as string);
    const gone = own.includes(channel) ? own : [channel];
    const next = gone.reduce<PersonRecord | undefined>(
      (left, each) => left && withoutPersonChannel(left, each),
      record,
    );
    if (next === undefined) return 'only';
    const isSame = roleOf(known, next.doors, policy) === roleOf(known, record.doors, policy);
    const off = record.doors.filter((door) => gone.includes(door.channel));
    return isSame ? { next, apart: apartOf(known, record, off) } : 'needed';
  }

  return {
    of,
    inChat,
    /** Whose message it is; undefined for our own machinery in a chat that is nobody's. */
    async author(message: Sent): Promise<Person | undefined> {
      const { sender, chat } = message;
      const seen = shown(message, false);
      if (seen === undefined || sender.kind !== 'person') return inChat(chat);
      const isSure = sender.verified !== 'unverified';
      const known = isSure ? await of(chat.channel, idsOf(sender)) : undefined;
      return known ?? withRole(await peopleRows.known(), fresh(seen));
    },
    /** What the sender is to the agent by anything but the message's own channel's configuration. */
    async roleIn({ sender, chat }: Sent): Promise<Role | undefined> {
      if (sender.kind !== 'person') return undefined;
      const known = await peopleRows.known();
      const ids = idsOf(sender);
      const own = decidedOf(known, chat.channel, ids);
      const record = recordOf(known, chat.channel, ids);
      if (record === undefined) return own;
      // Who is listed for one account of this channel is not for the others.
      const here: GateOf = (channel) =>
        channel === chat.channel ? policy(channel, chat.account) : policy(channel);
      const role = roleOf(known, record.doors, here);
      // Nobody vouches that it is them: no channel but this one counts, unless they are blocked.
      if (sender.verified === 'unverified') return role === 'blocked' ? role : own;
      return role;
    },
    /** Keeps what a message between the two of us shows of its sender. */
    async seen(message: InboundMessage): Promise<void> {
      const { sender, addressing, chat } = message;
      if (sender.kind !== 'person' || addressing !== 'direct') return;
      if (sender.verified === 'unverified') return;
      const ids = idsOf(sender);
      const [record, ...doubles] = recordsOf(await peopleRows.known(), chat.channel, ids);
      const door = record?.doors.find(({ channel }) => channel === chat.channel);
      const isOwn = localChannels.some(({ channel, lasts }) => channel === chat.channel && !lasts);
      const hasIds = door !== undefined && ids.every((id) => door.ids.includes(id));
      const isOne = record !== undefined && record.name !== '' && doubles.length === 0;
      if (isOne && hasIds && (isOwn || isSameChat(door.chat, chat))) return;
      await keep(message);
    },
    async get(id: string): Promise<Person | undefined> {
      const known = await peopleRows.known();
      const record = known.persons.get(id);
      return record && withRole(known, record);
    },
    /** Whom an id of ours, an id of a channel or a name means. */
    async find(typed: string): Promise<readonly Person[]> {
      const known = await peopleRows.known();
      const meant = typed.trim().toLowerCase();
      const records = [...known.persons.values()];
      const isMeant = ({ id, doors }: PersonRecord) =>
        id === meant || doors.some(({ ids }) => ids.some((own) => own.toLowerCase() === meant));
      const byId = records.filter(isMeant);
      const byName = records.filter(({ name }) => name.toLowerCase() === meant);
      return (byId.length > 0 ? byId : byName).map((record) => withRole(known, record));
    },
    async list(): Promise<readonly Person[]> {
      const known = await peopleRows.known();
      return [...known.persons.values()].map((record) => withRole(known, record));
    },
    /** `change` is pure and may run again. Undefined where nothing changed. */
    async change(id: PersonId, change: (record: PersonRecord) => PersonRecord) {
      const record = await persons.change(id, (stored) => stored && change(stored));
      return record && withRole(await peopleRows.known(), record);
    },
    /** One person of two: the second record is gone. Other rows are written with it. */
    async merge(first: PersonId, second: PersonRecord, alongside: readonly RowWrite[] = []) {
      if (first === second.id) return undefined;
      const record = await persons.change(
        first,
        (one) => one && mergePersons(one, second),
        () => [removed(second), ...alongside],
      );
      return record && withRole(await peopleRows.known(), record);
    },
    /**
     * Makes the sender, who was just paired as owner, and the one person of our own channels one person;
     * not where those belong to somebody with another channel already.
     */
    async joinLocalChannels(message: InboundMessage): Promise<void> {
      const known = await peopleRows.known();
      const seen = shown(message, true);
      if (seen === undefined) return;
      const sender = recordOf(known, message.chat.channel, seen.door.ids);
      const paired = withPersonChannel(sender ?? fresh(seen), seen.door);
      const own = localChannels.flatMap(
        ({ channel, id }) => recordOf(known, channel, [id]) ?? [],
      )[0];
      if (own?.doors.every(isOurs) === false || paired.doors.some(isOurs)) return;
      const { id } = own ?? paired;
      await persons.change(
        id,
        (stored) => {
          const record =
            own === undefined ? (stored ?? paired) : mergePersons(stored ?? own, paired);
          return localChannels.reduce<PersonRecord>(
            (person, door) => withPersonChannel(person, { channel: door.channel, ids: [door.id] }),
            withPersonChannel(record, seen.door),
          );
        },
        () => (sender === undefined || sender.id === id ? [] : [removed(sender)]),
      );
    },
    /**
     * Takes a channel off its person. `only`: it is the last one; `needed`: without it the others would
     * not be let in as before.
     */
    async unlink(id: PersonId, channel: string): Promise<'done' | 'only' | 'needed' | 'unknown'> {
      const known = await peopleRows.known();
      const outcomes: ReturnType<typeof parted>[] = [];
      const last = () => outcomes.at(-1) ?? 'unknown';
      await persons.change(
        id,
        (record) => {
          const outcome = parted(known, record, channel);
          outcomes.push(outcome);
          return typeof outcome === 'string' ? undefined : outcome.next;
        },
        () => {
          const outcome = last();
          const apart = typeof outcome === 'string' ? [] : outcome.apart;
          return apart.map((person) => persons.write(person.id, person));
        },
      );
      const outcome = last();
      return typeof outcome === 'string' ? outcome : 'done';
    },
    async forget(id: PersonId): Promise<boolean> {
      return (await persons.change(id, (record) => record && 'remove')) !== undefined;
    },
  };
}

// Finding people among those known, and what their channels give them.

const ID_CHARS = 12;

/** The configured part of the gate of a channel; without an account: the most that any of them gives. */
type GateOf = (channel: string, account?: AccountId) => ConfiguredGate;

/** The same for the same id, so that a repeat makes no second person; tells nothing about it. */
function newId(channel: string, ids: readonly UserId[]): PersonId {
  const hash = createHash('sha256').update(personIdKey(channel, ids[0] ?? ''));
  return personId(`p${hash.digest('hex').slice(0, ID_CHARS)}`);
}

/** Channels taken off a person keep what an owner allows whoever comes in by them. */
function apartOf(
  { persons }: KnownPeople,
  { name, limits, approvals }: PersonRecord,
  doors: readonly PersonChannel[],
): readonly PersonRecord[] {
  const [first] = doors;
  if (first === undefined || (limits === undefined && approvals === undefined)) return [];
  const { channel, ids } = first;
  const id = [newId(channel, ids), newId(`${channel}+`, ids)].find((one) => !persons.has(one));
  const kept = {
    ...(limits === undefined ? {} : { limits }),
    ...(approvals === undefined ? {} : { approvals }),
  };
  return id === undefined ? [] : [{ id, name, doors, conversations: 'each', ...kept }];
}

/** Records that share one of the ids, joined: a platform may show two ids of one person late. */
function recordOf(known: KnownPeople, channel: string, ids: readonly string[]) {
  const [first, ...others] = recordsOf(known, channel, ids);
  return first && others.reduce(mergePersons, first);
}

function recordsOf({ owners, persons }: KnownPeople, channel: string, ids: readonly string[]) {
  const found = new Set(ids.flatMap((id) => owners.get(personIdKey(channel, id)) ?? []));
  return [...found].flatMap((id) => persons.get(id) ?? []);
}

function decidedOf({ approvals }: KnownPeople, channel: string, ids: readonly string[]) {
  return joinRoles(ids.map((id) => approvals.get(personIdKey(channel, id))?.role));
}

/** The most that any channel gives: what was decided there, else what is configured; a block stands. */
function roleOf(known: KnownPeople, doors: readonly PersonChannel[], gateOf: GateOf) {
  const roles = doors.map(
    ({ channel, ids }) => decidedOf(known, channel, ids) ?? configuredRole(ids, gateOf(channel)),
  );
  return joinRoles(roles);
}

// Under which names somebody is known on all their doors, so that one person is counted once, and what
// an owner allows them.

export type Known = {
  /** `channel:id`. */
  readonly names: readonly string[];
  readonly limits?: PersonLimits;
  readonly approvals?: ApprovalPolicy;
};

/** Nothing of whom nobody vouches for. */
export type KnownAs = (message: Pick<InboundMessage, 'sender' | 'chat'>) => Promise<Known>;

export function createKnownAs(persons: Pick<Persons, 'of'>): KnownAs {
  return async ({ sender, chat }) => {
    if (sender.kind !== 'person' || sender.verified === 'unverified') return { names: [] };
    const person = await persons.of(chat.channel, idsOf(sender));
    const doors = person?.doors ?? [];
    const names = doors.flatMap(({ channel, ids }) => ids.map((id) => `${channel}:${id}`));
    const { limits, approvals } = person ?? {};
    return {
      names,
      ...(limits === undefined ? {} : { limits }),
      ...(approvals === undefined ? {} : { approvals }),
    };
  };
}
