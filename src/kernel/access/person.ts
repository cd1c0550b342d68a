// A person over all doors: the rules of whose ids belong together, what counts where several doors
// say something else, and how a person is named to others. Who decided it, and when, is not here.

import { shortened } from '../../lib/text/cut.ts';
import { languageNamed } from '../../lib/text/decode-text.ts';
import type { ChannelName, PersonId, SessionKey, UserId } from '../message/ids.ts';
import type { ChatRef } from '../message/message.ts';
import { verbatim } from '../message/untrusted.ts';
import { ADMITTED_ROLES, type Role } from './admission.ts';
import { type ApprovalPolicy, stricterPolicy } from './rights.ts';

/** One way in: the ids a person is surely known by on one channel. */
export type PersonChannel = {
  readonly channel: ChannelName;
  readonly ids: readonly UserId[];
  /** The conversation between the two of us there, once they have written. */
  readonly chat?: ChatRef;
};

/** `each`: every door has its own conversation; `shared`: one conversation over all doors. */
export const CONVERSATIONS = ['each', 'shared'] as const;
export type Conversations = (typeof CONVERSATIONS)[number];

/** What is kept of a person; the role is decided elsewhere and found by their ids. */
export type PersonRecord = {
  readonly id: PersonId;
  /** Shown, never trusted. */
  readonly name: string;
  readonly doors: readonly PersonChannel[];
  /** BCP 47, e.g. `de`. */
  readonly language?: string;
  /** IANA name. */
  readonly timeZone?: string;
  /** When they are not to be disturbed, see quietHoursOf; undefined: as configured. */
  readonly quietHours?: string;
  /** Where they are written to first, of their own accord. */
  readonly preferredDoor?: ChannelName;
  readonly conversations: Conversations;
  /** The one conversation of all doors, where they are shared. */
  readonly session?: SessionKey;
  /** Set by an owner; counts over what is configured. */
  readonly limits?: PersonLimits;
  /** How much an owner is asked for them; set by an owner, counts over what is configured. */
  readonly approvals?: ApprovalPolicy;
};

export type Person = PersonRecord & {
  /** Undefined: nobody let them in. */
  readonly role: Role | undefined;
};

export function personChannelOf(
  { doors }: Pick<PersonRecord, 'doors'>,
  channel: string,
): PersonChannel | undefined {
  return doors.find((door) => door.channel === channel);
}

/** The record with what was just seen of a door; the same object where nothing is new. */
export function withPersonChannel(person: PersonRecord, seen: PersonChannel): PersonRecord {
  const known = personChannelOf(person, seen.channel);
  if (known === undefined) return { ...person, doors: [...person.doors, seen] };
  const door = joinPersonChannels(known, seen);
  const isSame = known.ids.length === door.ids.length && isSameChat(known.chat, door.chat);
  if (isSame) return person;
  return { ...person, doors: person.doors.map((each) => (each === known ? door : each)) };
}

/** Two records that turned out to be one person; what the first says counts first, limits add up. */
export function mergePersons(first: PersonRecord, second: PersonRecord): PersonRecord {
  const { doors: _doors, ...said } = second;
  const limits = strictest(first.limits, second.limits);
  const approvals = stricterPolicy(first.approvals, second.approvals);
  const merged: PersonRecord = {
    ...{ ...said, ...first, name: first.name || second.name },
    ...(limits === undefined ? {} : { limits }),
    ...(approvals === undefined ? {} : { approvals }),
  };
  return second.doors.reduce((person, door) => {
    const own = personChannelOf(first, door.channel);
    // Of two chats on one door the first one's stays.
    return withPersonChannel(person, own?.chat === undefined ? door : { ...door, chat: own.chat });
  }, merged);
}

/** The record without the channel's door; undefined where no door would be left. */
export function withoutPersonChannel(
  person: PersonRecord,
  channel: string,
): PersonRecord | undefined {
  const doors = person.doors.filter((door) => door.channel !== channel);
  if (doors.length === 0) return undefined;
  const { preferredDoor, ...rest } = person;
  const isPreferred = preferredDoor === undefined || preferredDoor === channel;
  return { ...rest, doors, ...(isPreferred ? {} : { preferredDoor }) };
}

/** The record with the choice made, or taken back by undefined. */
export function withChoice<
  Key extends
    | 'language'
    | 'timeZone'
    | 'preferredDoor'
    | 'session'
    | 'limits'
    | 'quietHours'
    | 'approvals',
>(person: PersonRecord, key: Key, value: PersonRecord[Key] | undefined): PersonRecord {
  const entries = Object.entries({ ...person, [key]: value });
  return Object.fromEntries(entries.filter(([, each]) => each !== undefined)) as PersonRecord;
}

/** Whether somebody of the one role may hand it to somebody who has the other already. */
export function mayVouchFor(giver: Role | undefined, receiver: Role | undefined): boolean {
  if (giver === undefined || giver === 'blocked' || receiver === 'blocked') return false;
  return receiver === undefined || rankOf(giver) <= rankOf(receiver);
}

const rankOf = (role: Role) => (role === 'blocked' ? -1 : ADMITTED_ROLES.indexOf(role));

/** The chats in which a person is reached, the preferred door's first. */
export function chatsOf({ doors, preferredDoor }: PersonRecord): readonly ChatRef[] {
  const first = doors.filter(({ channel }) => channel === preferredDoor);
  const rest = doors.filter(({ channel }) => channel !== preferredDoor);
  return [...first, ...rest].flatMap(({ chat }) => chat ?? []);
}

export function isSameChat(one: ChatRef | undefined, other: ChatRef | undefined): boolean {
  return (
    one?.channel === other?.channel &&
    one?.account === other?.account &&
    one?.chat === other?.chat &&
    one?.thread === other?.thread
  );
}

function joinPersonChannels(known: PersonChannel, seen: PersonChannel): PersonChannel {
  const chat = seen.chat ?? known.chat;
  const ids = [...new Set([...known.ids, ...seen.ids])];
  return { channel: known.channel, ids, ...(chat === undefined ? {} : { chat }) };
}

/**
 * The tag (BCP 47) as the standard spells it, also where the language is typed by its English name or
 * the one it has itself; undefined where it is none.
 */
export function languageTag(typed: string): string | undefined {
  const wanted = typed.trim();
  try {
    const [tag] = Intl.getCanonicalLocales(wanted);
    if (tag !== undefined && nameOfLanguage(tag) !== undefined) return tag;
  } catch {
    // Not written as a tag: perhaps a name.
  }
  return languageNamed(wanted);
}

/** In English, as the model is told; undefined for a tag that names no language. */
export function nameOfLanguage(tag: string): string | undefined {
  return new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' }).of(tag);
}

// How a person is shown to an owner and to themselves. Names and ids are shown as they are, never as
// markup.

export function channelIdsText({ channel, ids }: PersonChannel): string {
  return `${channel} ${ids.map(verbatim).join(', ')}`;
}

/** One line, with the id by which the person is meant in commands. */
export function personLine(person: Person): string {
  const { id, name, role, doors } = person;
  const named = name === '' ? '' : `${verbatim(name)} `;
  return `${named}(${verbatim(id)}), ${role ?? 'unknown sender'}: ${doors.map(channelIdsText).join('; ')}`;
}

export function languageWords({ language }: Pick<Person, 'language'>): string {
  if (language === undefined) return 'the language of your message';
  return `${nameOfLanguage(language) ?? language} (${language})`;
}

// A question that the agent asks the person of the chat, and the words with which the model is told
// what came of it. Asking and waiting are left to features/approvals/asks.ts.

/** What the model asks; `choices` may be empty where words are allowed. */
export type PersonQuestion = {
  /** Markdown. */
  readonly text: string;
  readonly choices: readonly string[];
  /** Other words than those of the choices are an answer as well. */
  readonly allowsWords: boolean;
};

const MAX_NAMED_CHARS = 300;

/** The choice that words mean: by its number or its label. */
export function choiceMeant(
  { choices }: Pick<PersonQuestion, 'choices'>,
  words: string,
): string | undefined {
  const said = plain(words);
  const number = /^(\d{1,2})[.)]?$/.exec(said)?.[1];
  const byLabel = choices.find((label) => plain(label) === said);
  return byLabel ?? (number === undefined ? undefined : choices[Number(number) - 1]);
}

const plain = (text: string) => text.trim().toLowerCase();

export const answerNote = (question: PersonQuestion, choice: string | undefined) =>
  choice === undefined
    ? `[This answers your question ${named(question)}, unless it is about something else.]`
    : `[This answers your question ${named(question)}: they chose "${choice}".]`;

export const stillOpenNote = (question: PersonQuestion) =>
  `[Your question ${named(question)} is still open: only one of its choices answers it.]`;

export const expiredNote = (question: PersonQuestion) =>
  `[Nobody answered your question ${named(question)} in time; it can no longer be answered.]`;

function named({ text }: PersonQuestion): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return `"${shortened(line, MAX_NAMED_CHARS, ' …')}"`;
}

// What an owner allows one person a day, whatever the configuration says: counted over all their doors
// together. How messages and money are counted is not decided here.

/** 0: no limit; left out: as configured. */
export type PersonLimits = {
  readonly perMinute?: number;
  readonly perDay?: number;
  readonly tokensPerDay?: number;
  /** In the configured currency. */
  readonly moneyPerDay?: number;
};

type PersonLimit = {
  readonly key: keyof PersonLimits;
  /** As it is typed, also as a flag. */
  readonly name: string;
  readonly words: string;
  readonly most: number;
};

const MOST_MESSAGES = 1_000_000;
const MOST_TOKENS = 1_000_000_000_000;
const MOST_MONEY = 1_000_000_000;

export const PERSON_LIMITS: readonly PersonLimit[] = [
  {
    ...{ key: 'perMinute', name: 'messages-per-minute', words: 'messages a minute' },
    most: MOST_MESSAGES,
  },
  { key: 'perDay', name: 'messages-per-day', words: 'messages a day', most: MOST_MESSAGES },
  { key: 'tokensPerDay', name: 'tokens-per-day', words: 'tokens a day', most: MOST_TOKENS },
  { key: 'moneyPerDay', name: 'money-per-day', words: 'money a day', most: MOST_MONEY },
];

export const limitNamed = (name: string): PersonLimit | undefined =>
  PERSON_LIMITS.find((limit) => limit.name === name);

/** Undefined where it is no such number: messages and tokens are whole ones. */
export function readLimit({ key, most }: PersonLimit, typed: string): number | undefined {
  const value = /^\d{1,13}(?:\.\d{1,6})?$/.test(typed) ? Number(typed) : undefined;
  if (value === undefined || value > most) return undefined;
  return key === 'moneyPerDay' || Number.isInteger(value) ? value : undefined;
}

/** With one of them set, or taken back by undefined; undefined where none is left. */
export function withLimit(
  limits: PersonLimits | undefined,
  { key }: PersonLimit,
  value: number | undefined,
): PersonLimits | undefined {
  const entries = Object.entries({ ...limits, [key]: value });
  const kept = entries.filter(([, each]) => each !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** Of two records of one person: nobody is allowed more by being both. */
export function strictest(
  one: PersonLimits | undefined,
  other: PersonLimits | undefined,
): PersonLimits | undefined {
  return PERSON_LIMITS.reduce<PersonLimits | undefined>((limits, limit) => {
    const both = [one?.[limit.key], other?.[limit.key]].flatMap((value) => value ?? []);
    if (both.length === 0) return limits;
    const limited = both.filter((value) => value > 0);
    return withLimit(limits, limit, limited.length === 0 ? 0 : Math.min(...limited));
  }, undefined);
}

/** "50 messages a day, no limit of tokens a day"; undefined where none is set. */
export function limitWords(limits: PersonLimits | undefined): string | undefined {
  const set = PERSON_LIMITS.flatMap(({ key, words }) => {
    const value = limits?.[key];
    if (value === undefined) return [];
    return [value === 0 ? `no limit of ${words}` : `${value.toLocaleString('en-US')} ${words}`];
  });
  return set.length === 0 ? undefined : set.join(', ');
}
