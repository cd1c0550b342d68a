// The people this account knows, as durable rows: which LID and which number belong to the same
// person, the one chat of each, and the address for answers. rules/jid.ts decides about identities;
// pairs of LID and number come from the library.

import type { BinaryNode, SignalKeyStore, SocketConfig, WASocket } from '@whiskeysockets/baileys';
import { z } from 'zod';
import type { KeyValueChange } from '../../kernel/bus/store/store.ts';
import { NEVER, notSent } from '../../kernel/message/errors.ts';
import { type ChatId, chatId, userId } from '../../kernel/message/ids.ts';
import { createLanes, inTime, RecentMap } from '../../lib/async.ts';
import { storedJson } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ChannelHost } from '../channel.ts';
import { isOwnAddress, type LinkedAccount } from './creds.ts';
import {
  addressOf,
  chatOfMessage,
  chatsOf,
  idOfPerson,
  idsOfRecord,
  isNewcomer,
  isPerson,
  type KnownPeople,
  type PersonJid,
  type PersonRecord,
  type Placement,
  parseJid,
  personOfId,
  personSchema,
  place,
  SELF,
  SELF_CHAT,
  type Sighting,
} from './rules/jid.ts';

export type Meeting = {
  readonly address: PersonJid;
  /** The same person's other address, if the server sent it with the message. */
  readonly alt?: PersonJid;
  readonly role: Sighting['role'];
  readonly name?: string | undefined;
};

export type Person = ReturnType<typeof toPerson>;

export type People = ReturnType<typeof createPeople>;

type PeopleDeps = Pick<ChannelHost, 'state' | 'clock' | 'log'> & {
  readonly directory: Pick<ReturnType<typeof createLidDirectory>, 'otherOf'>;
  /** The linked account: its ids are never other names of another person. */
  account(): LinkedAccount | undefined;
};

/** A chat row: the person, or the chat it was joined into. */
const chatRowSchema = z.union([z.object({ into: z.string() }), personSchema]);

const chatKey = (chat: string) => `person/chat/${chat}`;
const idKey = (id: string) => `person/id/${id}`;
/** Joins form chains only when a person's chats are joined repeatedly. */
const MAX_STEPS = 10;
/** Of people who write now. */
const MAX_READ = 200;

export function createPeople(deps: PeopleDeps) {
  const { state, clock, directory } = deps;
  const lanes = createLanes();
  /** Chat rows by their text: each message asks for its person some ten times. */
  const read = new RecentMap<string, z.infer<typeof chatRowSchema>>(MAX_READ);

  function rowOf(stored: string) {
    const known = read.get(stored);
    if (known !== undefined) return known;
    const row = storedJson(chatRowSchema, stored);
    if (row !== undefined) read.set(stored, row);
    return row;
  }

  async function recordOf(chat: string): Promise<PersonRecord | undefined> {
    let name = chat;
    for (let step = 0; step < MAX_STEPS; step += 1) {
      const stored = await state.get(chatKey(name));
      if (stored === undefined) return undefined;
      const row = rowOf(stored);
      if (row === undefined) {
        deps.log.error('stored whatsapp person not readable');
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
    const idOf = (kind: PersonJid['kind']) => {
      const jid = [address, alt].find((one) => one?.kind === kind);
      return jid === undefined ? undefined : idOfPerson(jid);
    };
    return { number: idOf('number'), lid: idOf('lid'), address, role, name, at: clock.now() };
  }

  /** No lookup for a person whose two ids are known. */
  async function unsaidAlt(address: PersonJid): Promise<PersonJid | undefined> {
    const record = await byId(idOfPerson(address));
    const isWhole = record?.number !== undefined && record.lid !== undefined;
    return isWhole ? undefined : directory.otherOf(address);
  }

  async function freeChat(ids: readonly string[]): Promise<string> {
    const isFree = async (name: string) => (await state.get(chatKey(name))) === undefined;
    for (const id of ids) if (await isFree(id)) return id;
    for (let nth = 2; ; nth += 1) {
      const name = `${ids[0]}~${nth}`;
      if (await isFree(name)) return name;
    }
  }

  async function meet(meeting: Meeting): Promise<PersonRecord> {
    const sighting = await sightingOf(meeting);
    const [byNumber, byLid] = await Promise.all([byId(sighting.number), byId(sighting.lid)]);
    const known = { byNumber, byLid };
    const isNew = isNewcomer(known, sighting);
    const placement = place(known, sighting, isNew ? await freeChat(idsOfRecord(sighting)) : '');
    if (isNew && sighting.role === 'seen') return placement.person;
    const rows = changedRows(placement, known);
    if (rows.length > 0) await state.setMany(rows);
    return placement.person;
  }

  return {
    /** Stores what the sighting reveals; an unknown person who was only `seen` is not stored. */
    meet: (meeting: Meeting): Promise<Person> =>
      lanes.run('people', async () => toPerson(await meet(meeting), idOfPerson(meeting.address))),

    /** The owner wrote into the chat with themself, from this address. */
    meetSelf: (address: PersonJid): Promise<void> =>
      lanes.run('people', async () => {
        const known = await recordOf(SELF);
        const answerTo = addressOf(address);
        if (known?.answerTo === answerTo) return;
        const since = known?.since ?? clock.now();
        const record: PersonRecord = { chat: SELF, answerTo, since, wrote: true };
        await state.set(chatKey(SELF), JSON.stringify(record));
      }),

    /** The address for answers in this chat; undefined for an unknown name. */
    async addressOf(chat: ChatId): Promise<string | undefined> {
      const record = await recordOf(chat);
      const own = chat === SELF_CHAT ? deps.account() : undefined;
      // Another account may have been linked since the owner wrote.
      if (own !== undefined && !isOf(own, record?.answerTo)) return ownAddress(own);
      if (record !== undefined) return record.answerTo;
      const person = personOfId(chat);
      if (person !== undefined) return (await byId(chat))?.answerTo ?? addressOf(person);
      return parseJid(chat).kind === 'group' ? chat : undefined;
    },

    /** Whether a message ever came from the other side of this chat. */
    hasWritten: async (chat: ChatId): Promise<boolean> =>
      chat === SELF_CHAT || ((await recordOf(chat)) ?? (await byId(chat)))?.wrote === true,

    /** All names of the conversation, the current one first. */
    async namesOf(chat: ChatId): Promise<readonly [ChatId, ...ChatId[]]> {
      const record = (await recordOf(chat)) ?? (await byId(chat));
      const [current = chat, ...former] = record === undefined ? [] : chatsOf(record).map(chatId);
      return [current, ...former];
    },
  };
}

const ownAddress = (own: LinkedAccount) => addressOf({ kind: 'number', user: own.number });

function isOf(own: LinkedAccount, address: string | undefined): boolean {
  const jid = parseJid(address);
  return isPerson(jid) && isOwnAddress(jid, own);
}

function toPerson(record: PersonRecord, seenAs: string) {
  const [id = seenAs, ...others] = idsOfRecord(record);
  return {
    chat: chatId(record.chat),
    /** All names this chat ever had. */
    names: chatsOf(record).map(chatId),
    /** The phone number if it is known for certain, else the LID. */
    id: userId(id),
    alsoKnownAs: others.map(userId),
    /** The chat's name at the time of a message, see `chatOfMessage`; epoch milliseconds. */
    chatAt: (sentAt: number) => chatOfMessage(record, seenAs, sentAt),
  };
}

/** What differs from the stored rows, for one transaction. */
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

// Which phone number belongs to a LID, as the vendor's library knows it: from the rows it stored,
// and through the open connection. An answer may be late or never come; the wait is short.

/** `signalRepository.lidMapping` of an open connection. */
export type LidMapping = {
  getLIDForPN(number: string): Promise<string | null>;
  getPNForLID(lid: string): Promise<string | null>;
};

type LidDirectoryDeps = Pick<ChannelHost, 'clock' | 'log'> & {
  keys(): Pick<SignalKeyStore, 'get'>;
  /** Undefined while there is no connection. */
  mapping(): LidMapping | undefined;
};

/** Longest wait of a message for an answer. */
const LOOKUP_DEADLINE_MS = 1500;
/** Pause of requests after an answer that did not come in time. */
const REST_MS = 60_000;
/** When a person without a known pair is looked up again. */
const ASK_AGAIN_MS = 600_000;
const MAX_REMEMBERED = 1000;

export function createLidDirectory(deps: LidDirectoryDeps) {
  const { clock, log } = deps;
  /** When to ask again, monotonic. */
  const askAgainAt = new RecentMap<string, number>(MAX_REMEMBERED);
  let restingUntil = 0;

  async function stored(person: PersonJid): Promise<PersonJid | undefined> {
    const key = person.kind === 'number' ? person.user : `${person.user}_reverse`;
    const { [key]: user } = await deps.keys().get('lid-mapping', [key]);
    const kind = person.kind === 'number' ? 'lid' : 'number';
    return user === undefined ? undefined : otherJid(person, addressOf({ kind, user }));
  }

  async function asked(person: PersonJid): Promise<PersonJid | undefined> {
    const mapping = deps.mapping();
    const name = idOfPerson(person);
    const now = clock.monotonic();
    const isDue = now >= Math.max(restingUntil, askAgainAt.get(name) ?? 0);
    if (mapping === undefined || !isDue) return undefined;
    askAgainAt.set(name, now + ASK_AGAIN_MS);
    const answer = await inTime(clock, LOOKUP_DEADLINE_MS, ask(mapping, person));
    if (answer !== 'late') return otherJid(person, answer);
    restingUntil = clock.monotonic() + REST_MS;
    log.info('whatsapp identity lookup timed out');
    return undefined;
  }

  /** A connection that closes meanwhile counts as no answer. */
  async function ask(mapping: LidMapping, person: PersonJid): Promise<string | undefined> {
    const jid = addressOf(person);
    const asking = person.kind === 'number' ? mapping.getLIDForPN(jid) : mapping.getPNForLID(jid);
    try {
      return (await asking) ?? undefined;
    } catch (error) {
      log.info('whatsapp identity lookup failed', { error });
      return undefined;
    }
  }

  return {
    /** The same person's other address; undefined while it is unknown. */
    otherOf: async (person: PersonJid) => (await stored(person)) ?? (await asked(person)),
  };
}

function otherJid(person: PersonJid, text: string | undefined): PersonJid | undefined {
  const jid = parseJid(text);
  return isPerson(jid) && jid.kind !== person.kind ? jid : undefined;
}

// Asks WhatsApp which LID belongs to a phone number, in bounded time: a session call waits for the
// answer, and with it every chat. Baileys' own mapping store keeps known pairs.

type Ask = NonNullable<Parameters<SocketConfig['makeSignalRepository']>[2]>;

const ANSWER_DEADLINE_MS = 5_000;
/** How long a number without an answer counts as one without a LID: it is addressed by number. */
const UNKNOWN_FOR_MS = 60_000;

/** Never rejects: people who are not found in time are left out. */
export function createLidLookup(ask: Ask | undefined, clock: Clock, log: Logger): Ask {
  const unknownUntil = new RecentMap<string, number>(MAX_REMEMBERED);
  return async (numbers) => {
    const now = clock.monotonic();
    const asked = numbers.filter((number) => (unknownUntil.get(number) ?? 0) <= now);
    if (ask === undefined || asked.length === 0) return [];
    const answer = await inTime(clock, ANSWER_DEADLINE_MS, ask(asked)).catch(() => 'late' as const);
    if (answer === 'late') log.warn('WhatsApp did not send the number of the account');
    const found = answer === 'late' ? [] : (answer ?? []);
    for (const number of asked) {
      const isFound = found.some(({ pn }) => pn === number);
      if (!isFound) unknownUntil.set(number, clock.monotonic() + UNKNOWN_FOR_MS);
    }
    return found;
  };
}

// The members of a group, cached so that not every message asks the server first. Dropped as soon
// as the server reports a change in the group, and with each connection.

type Metadata = Awaited<ReturnType<WASocket['groupMetadata']>>;

type GroupSource = Pick<WASocket, 'ws' | 'groupMetadata'>;

/** Bounds the effect of a lost notification. */
const LIFETIME_MS = 600_000;
const MAX_GROUPS = 200;
const CHANGED = 'CB:notification,type:w:gp2';
/** The server's codes for a group that the account left or was removed from, or that is gone. */
const OUTSIDE: readonly unknown[] = [403, 404];

export function createGroupMembers(clock: Clock) {
  const known = new RecentMap<
    string,
    { readonly at: number; readonly metadata: Promise<Metadata> }
  >(MAX_GROUPS);
  let socket: GroupSource | undefined;

  function ask(source: GroupSource, jid: string): Promise<Metadata> {
    const metadata = source.groupMetadata(jid).catch((error) => {
      const isOutside = OUTSIDE.includes(Reflect.get(Object(error), 'data'));
      const reason = t`the account is not in this group`;
      throw isOutside ? notSent(reason, NEVER, 'whatsapp_not_in_group', error) : error;
    });
    known.set(jid, { at: clock.monotonic(), metadata });
    metadata.catch(() => known.delete(jid));
    return metadata;
  }

  return {
    /** For the library, which asks before each message to a group. */
    async of(jid: string): Promise<Metadata | undefined> {
      const remembered = known.get(jid);
      if (remembered !== undefined && clock.monotonic() - remembered.at < LIFETIME_MS) {
        return remembered.metadata;
      }
      return socket === undefined ? undefined : ask(socket, jid);
    },

    /** Call with each new socket; disposed when its connection is over. */
    attach(fresh: GroupSource): Disposable {
      const changed = ({ attrs }: BinaryNode) => void known.delete(attrs['from'] ?? '');
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
