// People on all their channels: whose message it is, their role, and their stored record. Read from
// memory at every message; written only when a person shows something new.

import { hash } from 'node:crypto';
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
import { type KnownPeople, type PeopleRows, personIdKey, privateChatKey } from './people-rows.ts';

/** Limit of stored people: an open channel must not fill the store. */
const MAX_PERSONS = 10_000;

/** A local channel: everybody who uses one of them is the same person. */
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
    const personChannel: PersonChannel = {
      channel: chat.channel,
      ids,
      ...(isKept ? { chat } : {}),
    };
    const others = own === undefined ? [] : localChannels.filter((each) => each !== own);
    return {
      name: shortName(sender.name),
      personChannel,
      others: others.map((each) => ({ ...each, ids })),
    };
  }

  function fresh({
    name,
    personChannel,
    others,
  }: NonNullable<ReturnType<typeof shown>>): PersonRecord {
    const [first] = [personChannel, ...others].sort((a, b) => a.channel.localeCompare(b.channel));
    const more = others.map(({ channel, ids }): PersonChannel => ({ channel, ids }));
    const id = newId(first?.channel ?? personChannel.channel, personChannel.ids);
    return { id, name, doors: [personChannel, ...more], conversations: 'each' };
  }

  /** The person known for certain by one of these ids. */
  async function of(channel: string, ids: readonly string[]): Promise<Person | undefined> {
    const known = await peopleRows.known();
    const record = recordOf(known, channel, ids);
    return record && withRole(known, record);
  }

  /** The person of this private chat. */
  async function inChat(chat: ChatRef): Promise<Person | undefined> {
    const known = await peopleRows.known();
    const [record] = known.persons.by(privateChatKey(chat));
    return record && withRole(known, record);
  }

  async function keep(message: InboundMessage): Promise<void> {
    const seen = shown(message, true);
    if (seen === undefined) return;
    const known = await peopleRows.known();
    const [first, ...doubles] = recordsOf(known, message.chat.channel, seen.personChannel.ids);
    if (first === undefined && known.persons.all.size >= MAX_PERSONS) return;
    const start = first ?? fresh(seen);
    await persons.change(
      start.id,
      // A person who was removed meanwhile is not restored by this.
      (stored = first === undefined ? start : undefined) => {
        if (stored === undefined) return undefined;
        const record = doubles.reduce(mergePersons, stored);
        const isNamed = record.name !== '' || seen.name === '';
        return withPersonChannel(
          isNamed ? record : { ...record, name: seen.name },
          seen.personChannel,
        );
      },
      () => doubles.map(removed),
    );
  }

  /** The person without the channel; if it is a local channel, without all of them. */
  function parted(known: KnownPeople, record: PersonRecord | undefined, channel: string) {
    if (record === undefined || personChannelOf(record, channel) === undefined) return 'unknown';
    const own = localChannels.map((local) => local.channel as string);
    const gone = own.includes(channel) ? own : [channel];
    const next = gone.reduce<PersonRecord | undefined>(
      (left, each) => left && withoutPersonChannel(left, each),
      record,
    );
    if (next === undefined) return 'only';
    const isSame = roleOf(known, next.doors, policy) === roleOf(known, record.doors, policy);
    const off = record.doors.filter((personChannel) => gone.includes(personChannel.channel));
    return isSame ? { next, apart: apartOf(known, record, off) } : 'needed';
  }

  return {
    of,
    inChat,
    /** The author of the message; undefined for an internal sender in a chat of nobody. */
    async author(message: Sent): Promise<Person | undefined> {
      const { sender, chat } = message;
      const seen = shown(message, false);
      if (seen === undefined || sender.kind !== 'person') return inChat(chat);
      const isSure = sender.verified !== 'unverified';
      const known = isSure ? await of(chat.channel, idsOf(sender)) : undefined;
      return known ?? withRole(await peopleRows.known(), fresh(seen));
    },
    /** The sender's role from everything except the configuration of the message's own channel. */
    async roleIn({ sender, chat }: Sent): Promise<Role | undefined> {
      if (sender.kind !== 'person') return undefined;
      const known = await peopleRows.known();
      const ids = idsOf(sender);
      const own = decidedOf(known, chat.channel, ids);
      const record = recordOf(known, chat.channel, ids);
      if (record === undefined) return own;
      // Being on the list of one account of this channel does not count for the others.
      const here: GateOf = (channel) =>
        channel === chat.channel ? policy(channel, chat.account) : policy(channel);
      const role = roleOf(known, record.doors, here);
      // The sender is unverified: only this channel counts, unless they are blocked.
      if (sender.verified === 'unverified') return role === 'blocked' ? role : own;
      return role;
    },
    /** Stores what a message in a private chat shows of its sender. */
    async seen(message: InboundMessage): Promise<void> {
      const { sender, addressing, chat } = message;
      if (sender.kind !== 'person' || addressing !== 'direct') return;
      if (sender.verified === 'unverified') return;
      const ids = idsOf(sender);
      const [record, ...doubles] = recordsOf(await peopleRows.known(), chat.channel, ids);
      const personChannel = record?.doors.find(({ channel }) => channel === chat.channel);
      const isOwn = localChannels.some(({ channel, lasts }) => channel === chat.channel && !lasts);
      const hasIds =
        personChannel !== undefined && ids.every((id) => personChannel.ids.includes(id));
      const isOne = record !== undefined && record.name !== '' && doubles.length === 0;
      if (isOne && hasIds && (isOwn || isSameChat(personChannel.chat, chat))) return;
      await keep(message);
    },
    async get(id: string): Promise<Person | undefined> {
      const known = await peopleRows.known();
      const record = known.persons.all.get(id);
      return record && withRole(known, record);
    },
    /** The people that an id of ours, an id of a channel or a name refers to. */
    async find(typed: string): Promise<readonly Person[]> {
      const known = await peopleRows.known();
      const meant = typed.trim().toLowerCase();
      const records = await persons.list();
      const isMeant = ({ id, doors }: PersonRecord) =>
        id === meant || doors.some(({ ids }) => ids.some((own) => own.toLowerCase() === meant));
      const byId = records.filter(isMeant);
      const byName = records.filter(({ name }) => name.toLowerCase() === meant);
      return (byId.length > 0 ? byId : byName).map((record) => withRole(known, record));
    },
    async list(): Promise<readonly Person[]> {
      const known = await peopleRows.known();
      return (await persons.list()).map((record) => withRole(known, record));
    },
    /** `change` is pure and may run again. Undefined if nothing changed. */
    async change(id: PersonId, change: (record: PersonRecord) => PersonRecord) {
      const record = await persons.change(id, (stored) => stored && change(stored));
      return record && withRole(await peopleRows.known(), record);
    },
    /** Merges two people: the second record is removed. Other rows are written with it. */
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
     * Merges the sender, who was just paired as owner, with the person of the local channels; not
     * if those already belong to a person with another channel.
     */
    async joinLocalChannels(message: InboundMessage): Promise<void> {
      const known = await peopleRows.known();
      const seen = shown(message, true);
      if (seen === undefined) return;
      const sender = recordOf(known, message.chat.channel, seen.personChannel.ids);
      const paired = withPersonChannel(sender ?? fresh(seen), seen.personChannel);
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
            (person, personChannel) =>
              withPersonChannel(person, {
                channel: personChannel.channel,
                ids: [personChannel.id],
              }),
            withPersonChannel(record, seen.personChannel),
          );
        },
        () => (sender === undefined || sender.id === id ? [] : [removed(sender)]),
      );
    },
    /**
     * Unlinks a channel from its person. `only`: it is the last one; `needed`: without it the
     * others would lose their role.
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

// Finds people among the known ones, and the role that their channels give them.

const ID_CHARS = 12;

/** The configured part of a channel's admission; without an account: the widest of its accounts. */
type GateOf = (channel: string, account?: AccountId) => ConfiguredGate;

/**
 * The same for the same id, so that a repeat creates no second person; reveals nothing about it.
 */
function newId(channel: string, ids: readonly UserId[]): PersonId {
  const name = hash('sha256', personIdKey(channel, ids[0] ?? ''));
  return personId(`p${name.slice(0, ID_CHARS)}`);
}

/** Channels unlinked from a person keep the limits that an owner set. */
function apartOf(
  { persons }: KnownPeople,
  { name, limits, approvals }: PersonRecord,
  doors: readonly PersonChannel[],
): readonly PersonRecord[] {
  const [first] = doors;
  if (first === undefined || (limits === undefined && approvals === undefined)) return [];
  const { channel, ids } = first;
  const id = [newId(channel, ids), newId(`${channel}+`, ids)].find((one) => !persons.all.has(one));
  const kept = {
    ...(limits === undefined ? {} : { limits }),
    ...(approvals === undefined ? {} : { approvals }),
  };
  return id === undefined ? [] : [{ id, name, doors, conversations: 'each', ...kept }];
}

/**
 * Records that share one of the ids, joined: a platform may reveal a second id of a person late.
 */
function recordOf(known: KnownPeople, channel: string, ids: readonly string[]) {
  const [first, ...others] = recordsOf(known, channel, ids);
  return first && others.reduce(mergePersons, first);
}

function recordsOf({ persons }: KnownPeople, channel: string, ids: readonly string[]) {
  return [...new Set(ids.flatMap((id) => persons.by(personIdKey(channel, id)).at(-1) ?? []))];
}

function decidedOf({ approvals }: KnownPeople, channel: string, ids: readonly string[]) {
  return joinRoles(ids.map((id) => approvals.get(personIdKey(channel, id))?.role));
}

/**
 * The highest role from any channel: what was decided there, else what is configured; a block takes
 * precedence.
 */
function roleOf(known: KnownPeople, doors: readonly PersonChannel[], gateOf: GateOf) {
  const roles = doors.map(
    ({ channel, ids }) => decidedOf(known, channel, ids) ?? configuredRole(ids, gateOf(channel)),
  );
  return joinRoles(roles);
}

// The names of a person on all their channels, so that one person is counted once, and the limits
// that an owner set.

export type Known = {
  /** `channel:id`. */
  readonly names: readonly string[];
  readonly limits?: PersonLimits;
  readonly approvals?: ApprovalPolicy;
};

/** Empty for an unverified sender. */
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
