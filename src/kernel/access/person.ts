// A person on all channels: which ids belong together, which value applies if records differ, and
// how a person is shown to others. Roles are decided elsewhere.

import { oneLine, shortened } from '../../lib/text/cut.ts';
import { languageNamed } from '../../lib/text/decode-text.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelName, PersonId, SessionKey, UserId } from '../message/ids.ts';
import type { ChatRef } from '../message/message.ts';
import { verbatim } from '../message/untrusted.ts';
import { ADMITTED_ROLES, type Role } from './admission.ts';
import { type ApprovalPolicy, stricterPolicy } from './rights.ts';

/** The ids by which a person is known for certain on one channel. */
export type PersonChannel = {
  readonly channel: ChannelName;
  readonly ids: readonly UserId[];
  /** Their private chat there, once they have written. */
  readonly chat?: ChatRef;
};

/** `each`: a conversation for every channel; `shared`: one conversation on all channels. */
export const CONVERSATIONS = ['each', 'shared'] as const;
export type Conversations = (typeof CONVERSATIONS)[number];

/** The stored record of a person; the role is decided elsewhere and found by their ids. */
export type PersonRecord = {
  readonly id: PersonId;
  /** Shown, never trusted. */
  readonly name: string;
  readonly doors: readonly PersonChannel[];
  /** BCP 47, e.g. `de`. */
  readonly language?: string;
  /** IANA name. */
  readonly timeZone?: string;
  /** Their quiet hours, see quietHoursOf; undefined: as configured. */
  readonly quietHours?: string;
  /** The channel for messages that the agent starts. */
  readonly preferredDoor?: ChannelName;
  readonly conversations: Conversations;
  /** The shared conversation of all channels, if they share one. */
  readonly session?: SessionKey;
  /** Set by an owner; takes precedence over the configuration. */
  readonly limits?: PersonLimits;
  /**
   * How often an owner is asked about them; set by an owner, takes precedence over the
   * configuration.
   */
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
  return doors.find((personChannel) => personChannel.channel === channel);
}

/** The record with what was just seen on a channel; the same object if nothing is new. */
export function withPersonChannel(person: PersonRecord, seen: PersonChannel): PersonRecord {
  const known = personChannelOf(person, seen.channel);
  if (known === undefined) return { ...person, doors: [...person.doors, seen] };
  const personChannel = joinPersonChannels(known, seen);
  const isSame =
    known.ids.length === personChannel.ids.length && isSameChat(known.chat, personChannel.chat);
  if (isSame) return person;
  return { ...person, doors: person.doors.map((each) => (each === known ? personChannel : each)) };
}

/** Merges two records of one person; the first takes precedence, limits are joined. */
export function mergePersons(first: PersonRecord, second: PersonRecord): PersonRecord {
  const { doors: _channels, ...said } = second;
  const limits = strictest(first.limits, second.limits);
  const approvals = stricterPolicy(first.approvals, second.approvals);
  const merged: PersonRecord = {
    ...{ ...said, ...first, name: first.name || second.name },
    ...(limits === undefined ? {} : { limits }),
    ...(approvals === undefined ? {} : { approvals }),
  };
  return second.doors.reduce((person, personChannel) => {
    const own = personChannelOf(first, personChannel.channel);
    // Of two chats on one channel the first one's stays.
    return withPersonChannel(
      person,
      own?.chat === undefined ? personChannel : { ...personChannel, chat: own.chat },
    );
  }, merged);
}

/** The record without this channel; undefined if no channel is left. */
export function withoutPersonChannel(
  person: PersonRecord,
  channel: string,
): PersonRecord | undefined {
  const doors = person.doors.filter((personChannel) => personChannel.channel !== channel);
  if (doors.length === 0) return undefined;
  const { preferredDoor, ...rest } = person;
  const isPreferred = preferredDoor === undefined || preferredDoor === channel;
  return { ...rest, doors, ...(isPreferred ? {} : { preferredDoor }) };
}

/** The record with the choice set, or removed if undefined. */
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

/** Whether a person with one role may give it to a person who already has the other. */
export function mayVouchFor(giver: Role | undefined, receiver: Role | undefined): boolean {
  if (giver === undefined || giver === 'blocked' || receiver === 'blocked') return false;
  return receiver === undefined || rankOf(giver) <= rankOf(receiver);
}

const rankOf = (role: Role) => (role === 'blocked' ? -1 : ADMITTED_ROLES.indexOf(role));

/** The chats in which a person can be reached, the preferred channel's first. */
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
 * The canonical language tag (BCP 47); also accepts a language's English or native name; undefined
 * if it is none.
 */
export function languageTag(typed: string): string | undefined {
  const wanted = typed.trim();
  try {
    const [tag] = Intl.getCanonicalLocales(wanted);
    if (tag !== undefined && nameOfLanguage(tag) !== undefined) return tag;
  } catch {
    // Not a tag: possibly a name.
  }
  return languageNamed(wanted);
}

/** The English name, for the model; undefined for an unknown tag. */
export function nameOfLanguage(tag: string): string | undefined {
  return new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' }).of(tag);
}

// How a person is shown to an owner and to themselves. Names and ids are shown unchanged, never as
// markup.

export function channelIdsText({ channel, ids }: PersonChannel): string {
  return `${channel} ${ids.map(verbatim).join(', ')}`;
}

/** One line, with the id that identifies the person in commands. */
export function personLine(person: Person): string {
  const { id, name, role, doors } = person;
  const named = name === '' ? '' : `${verbatim(name)} `;
  return `${named}(${verbatim(id)}), ${role ?? t`unknown sender`}: ${doors.map(channelIdsText).join('; ')}`;
}

export function languageWords({ language }: Pick<Person, 'language'>): string {
  if (language === undefined) return t`the language of your message`;
  return `${nameOfLanguage(language) ?? language} (${language})`;
}

// A question of the agent to the person in the chat, and the text with which the model gets its
// outcome. features/approvals/asks.ts asks and waits.

/** The model's question; `choices` may be empty if free text is allowed. */
export type PersonQuestion = {
  /** Markdown. */
  readonly text: string;
  readonly choices: readonly string[];
  /** Text other than the choices is an answer as well. */
  readonly allowsWords: boolean;
};

const MAX_NAMED_CHARS = 300;

/** The choice that a text names: by its number or its label. */
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
  const line = oneLine(text);
  return `"${shortened(line, MAX_NAMED_CHARS, ' …')}"`;
}

// An owner's daily limits for one person, which override the configuration: counted on all their
// channels together. Messages and money are counted elsewhere.

/** 0: no limit; absent: as configured. */
export type PersonLimits = {
  readonly perMinute?: number;
  readonly perDay?: number;
  readonly tokensPerDay?: number;
  /** In the configured currency. */
  readonly moneyPerDay?: number;
};

type PersonLimit = {
  readonly key: keyof PersonLimits;
  /** As typed, also as a flag. */
  readonly name: string;
  readonly words: string;
  readonly most: number;
};

const MOST_MESSAGES = 1_000_000;
const MOST_TOKENS = 1_000_000_000_000;
const MOST_MONEY = 1_000_000_000;

export const PERSON_LIMITS: readonly PersonLimit[] = [
  {
    ...{ key: 'perMinute', name: 'messages-per-minute', words: t`messages a minute` },
    most: MOST_MESSAGES,
  },
  { key: 'perDay', name: 'messages-per-day', words: t`messages a day`, most: MOST_MESSAGES },
  { key: 'tokensPerDay', name: 'tokens-per-day', words: t`tokens a day`, most: MOST_TOKENS },
  { key: 'moneyPerDay', name: 'money-per-day', words: t`money a day`, most: MOST_MONEY },
];

export const limitNamed = (name: string): PersonLimit | undefined =>
  PERSON_LIMITS.find((limit) => limit.name === name);

/** Undefined if invalid: messages and tokens are integers. */
export function readLimit({ key, most }: PersonLimit, typed: string): number | undefined {
  const value = /^\d{1,13}(?:\.\d{1,6})?$/.test(typed) ? Number(typed) : undefined;
  if (value === undefined || value > most) return undefined;
  return key === 'moneyPerDay' || Number.isInteger(value) ? value : undefined;
}

/** With one limit set, or removed if undefined; undefined if none is left. */
export function withLimit(
  limits: PersonLimits | undefined,
  { key }: PersonLimit,
  value: number | undefined,
): PersonLimits | undefined {
  const entries = Object.entries({ ...limits, [key]: value });
  const kept = entries.filter(([, each]) => each !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** For two merged records: the stricter limit of each kind. */
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

/** "50 messages a day, no limit of tokens a day"; undefined if none is set. */
export function limitWords(limits: PersonLimits | undefined): string | undefined {
  const set = PERSON_LIMITS.flatMap(({ key, words }) => {
    const value = limits?.[key];
    if (value === undefined) return [];
    return [value === 0 ? t`no limit of ${words}` : `${value.toLocaleString('en-US')} ${words}`];
  });
  return set.length === 0 ? undefined : set.join(', ');
}
