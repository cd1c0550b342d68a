// How many messages of a person are answered: under which names a message is counted, which limits
// apply (precedence: what an owner set for the person, the most specific configured exception, the
// channel's limits, the general limits), and the count per minute and day.

import { fieldsOf, parseJson } from '../../lib/json/json.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import type { LocalDay } from '../../lib/time/zone-time.ts';
import type { AdmittedRole } from '../access/admission.ts';
import type { PersonLimits } from '../access/person.ts';
import type { LimitsConfig } from '../config/limits.ts';
import { type InboundMessage, idsOf } from './message.ts';

/** Names of one person or one group, `channel:id`; a shared name means the same person. */
export type CountNames = readonly [string, ...string[]];

/** A forged sender uses up nothing of the real person's limits. */
export function personNames({ sender, chat }: Pick<InboundMessage, 'sender' | 'chat'>): CountNames {
  const isSure = sender.kind === 'system' || sender.verified !== 'unverified';
  const name = (id: string) => `${chat.channel}:${isSure ? '' : 'unverified:'}${id}`;
  if (sender.kind === 'system') return [name(sender.source)];
  const [, ...others] = idsOf(sender);
  return [name(sender.id), ...others.map(name)];
}

export function groupNames({ group, chat }: InboundMessage): CountNames | undefined {
  if (group === undefined) return undefined;
  const name = (id: string) => `${chat.channel}:${id}`;
  const [first, ...others] = group.ids;
  return [name(first), ...others.map(name)];
}

/** `names`: those of the person on all channels; `own`: the limits that an owner set. */
export function personLimits(
  message: InboundMessage,
  role: AdmittedRole,
  limits: LimitsConfig,
  names: readonly string[],
  own?: PersonLimits,
): MessageLimits {
  const { perMinute, perDay } = limits.messages;
  const standard = { perMinute, perDay, ...exceptionFor([message.chat.channel], limits) };
  return {
    ...(role === 'owner' ? ownerLimits(standard) : standard),
    ...exceptionFor(names, limits),
    ...setBy(own),
  };
}

export function groupLimits(names: CountNames, limits: LimitsConfig): MessageLimits {
  const { groupPerMinute: perMinute, groupPerDay: perDay } = limits.messages;
  return { perMinute, perDay, ...exceptionFor(names, limits) };
}

function exceptionFor(
  names: readonly string[],
  { exceptions }: LimitsConfig,
): Partial<MessageLimits> {
  return setBy(exceptions.find(({ who }) => names.includes(who)));
}

function setBy({ perMinute, perDay }: SetLimits = {}): Partial<MessageLimits> {
  return {
    ...(perMinute === undefined ? {} : { perMinute }),
    ...(perDay === undefined ? {} : { perDay }),
  };
}

type SetLimits = {
  readonly perMinute?: number | undefined;
  readonly perDay?: number | undefined;
};

// Values stored under several names at once: a person seen under one of them is the same as under
// the others. Two values that turn out to belong to one person are joined.

export type CountRow<Value> = {
  /** The name it is stored under: the first one seen. */
  readonly key: string;
  readonly names: ReadonlySet<string>;
  value: Value;
};

/** The name it is stored under first. */
export function namesOf({ key, names }: Pick<CountRow<unknown>, 'key' | 'names'>): CountNames {
  return [key, ...[...names].filter((name) => name !== key)];
}

/** What must be written so that the collection can be restored. */
export type StoredRow = { readonly key: string; readonly value: string | undefined };

type RowsToStore = {
  readonly rows: readonly StoredRow[];
  /** They are on disk. */
  written(): void;
};

export class CountRows<Value> {
  readonly #fresh: Value;
  readonly #join: (left: Value, right: Value) => Value;
  readonly #rows = new Map<string, CountRow<Value>>();
  /** Keys of rows that were joined into others and are still stored. */
  readonly #gone = new Set<string>();
  /** Rows that others were joined into; stored before those are deleted. */
  readonly #joined = new Set<CountRow<Value>>();

  constructor(fresh: Value, join: (left: Value, right: Value) => Value) {
    this.#fresh = fresh;
    this.#join = join;
  }

  /** The single row of these names, created if there is none. */
  at([first, ...others]: readonly [string, ...string[]]): CountRow<Value> {
    const met = this.#rows.get(first);
    if (met !== undefined && others.every((name) => this.#rows.get(name) === met)) return met;
    const names = [first, ...others];
    const found = [...new Set(names.flatMap((name) => this.#rows.get(name) ?? []))];
    const [known, ...more] = found;
    const row: CountRow<Value> = {
      key: known?.key ?? first,
      names: new Set([...found.flatMap((one) => [...one.names]), ...names]),
      value: more.reduce((value, one) => this.#join(value, one.value), known?.value ?? this.#fresh),
    };
    for (const one of more) this.#gone.add(one.key);
    if (more.length > 0) this.#joined.add(row);
    for (const name of row.names) this.#rows.set(name, row);
    return row;
  }

  /** Every row once. */
  get rows(): readonly CountRow<Value>[] {
    return [...new Set(this.#rows.values())];
  }

  forget(row: CountRow<Value>): void {
    for (const name of row.names) this.#rows.delete(name);
  }

  /**
   * The rows to store in their current state, with those that absorbed others and the deletion of
   * the others, which are repeated until they are written.
   */
  stored(rows: Iterable<CountRow<Value>>): RowsToStore {
    const joined = [...this.#joined];
    const current = [...rows, ...joined].map((row) => this.#rows.get(row.key) ?? row);
    const written = [...new Set(current)].map(({ key, names, value }) => ({
      key,
      value: JSON.stringify({ names: [...names], value }),
    }));
    // A name that was dropped meanwhile may have a row of its own again.
    const gone = [...this.#gone].filter((key) => this.#rows.get(key)?.key !== key);
    const deleted = gone.map((key) => ({ key, value: undefined }));
    const wereGone = [...this.#gone];
    return {
      rows: [...deleted, ...written],
      written: () => {
        for (const key of wereGone) this.#gone.delete(key);
        for (const row of joined) this.#joined.delete(row);
      },
    };
  }

  /** Restores what `stored` wrote; undefined if it is damaged. */
  read(text: string): CountRow<Value> | undefined {
    const stored = storedValue<Value>(text);
    if (stored === undefined) return undefined;
    const row = this.at(stored.names);
    row.value = this.#join(row.value, stored.value);
    return row;
  }
}

type Stored<Value> = { readonly names: readonly [string, ...string[]]; readonly value: Value };

function storedValue<Value>(text: string): Stored<Value> | undefined {
  try {
    const stored: Partial<Stored<Value>> = JSON.parse(text);
    const { names, value } = stored;
    return names === undefined || value === undefined ? undefined : { names, value };
  } catch {
    return undefined;
  }
}

/** Of a stored row of several processes: the name under which the count stands; undefined: here. */
export function leadOf(text: string): string | undefined {
  const lead = fieldsOf(parseJson(text))?.['lead'];
  return typeof lead === 'string' ? lead : undefined;
}

// How many messages of one person, or of one group together, are answered: a limit per minute and
// one per day. Pure rules; the gateway decides who counts as one person and what is stored.

/** 0: no limit. */
export type MessageLimits = { readonly perMinute: number; readonly perDay: number };

export type Pause = {
  /** Epoch milliseconds. */
  readonly until: number;
  readonly because: 'minute' | 'day';
};

export type Tally = {
  /** Times of the last minute's messages, ascending, epoch milliseconds. */
  readonly recent: readonly number[];
  readonly day: string;
  /** Messages of that day. */
  readonly today: number;
  readonly pause?: Pause;
};

export type Moment = {
  /** When the message was said, at most now: messages that waited during an outage are no flood. */
  readonly saidAt: number;
  readonly now: number;
  readonly today: LocalDay;
};

type FairUseVerdict =
  | { readonly kind: 'take' }
  /** `isNew`: the pause begins with this message. */
  | { readonly kind: 'refuse'; readonly pause: Pause; readonly isNew: boolean };

export const MINUTE_MS = 60_000;
/** Owners pay for it themselves; the limit only stops runaway use. */
const OWNER_FACTOR = 10;
/** Commands call no model; this only bounds the other costs of a flood. */
export const COMMAND_LIMITS: MessageLimits = { perMinute: 60, perDay: 0 };

export const NO_MESSAGES: Tally = { recent: [], day: '', today: 0 };

function ownerLimits({ perMinute, perDay }: MessageLimits): MessageLimits {
  return { perMinute: perMinute * OWNER_FACTOR, perDay: perDay * OWNER_FACTOR };
}

/**
 * Whether one more message fits. After a minute over the limit the pause lasts a whole minute from
 * the last accepted message, so that one notice is enough.
 */
export function weigh(tally: Tally, moment: Moment, limits: MessageLimits): FairUseVerdict {
  const { saidAt, now, today } = moment;
  const { pause } = tally;
  if (pause !== undefined && (pause.because === 'minute' ? saidAt : now) < pause.until) {
    if (stillHolds(pause, tally, moment, limits)) return { kind: 'refuse', pause, isNew: false };
  }
  if (limits.perDay > 0 && messagesOn(tally, today.day) >= limits.perDay) {
    return { kind: 'refuse', pause: { until: today.endsAt, because: 'day' }, isNew: true };
  }
  const near = tally.recent.filter((at) => Math.abs(at - saidAt) < MINUTE_MS);
  const newest = near.at(-1);
  if (limits.perMinute > 0 && newest !== undefined && near.length >= limits.perMinute) {
    const until = newest + MINUTE_MS;
    return { kind: 'refuse', pause: { until, because: 'minute' }, isNew: true };
  }
  return { kind: 'take' };
}

/** A removed limit ends its pause; a daily one also if it was raised. */
function stillHolds(
  { because }: Pause,
  tally: Tally,
  { today }: Moment,
  { perMinute, perDay }: MessageLimits,
): boolean {
  if (because === 'minute') return perMinute > 0;
  return perDay > 0 && messagesOn(tally, today.day) >= perDay;
}

/** The tally with one more message. */
export function taken(tally: Tally, { saidAt, today }: Moment, limits: MessageLimits): Tally {
  const recent = [...tally.recent.filter((at) => at > saidAt - MINUTE_MS), saidAt];
  recent.sort((left, right) => left - right);
  return {
    recent: limits.perMinute > 0 ? recent.slice(-limits.perMinute) : [],
    day: today.day,
    today: messagesOn(tally, today.day) + 1,
  };
}

/** The tally without a message that was counted already. */
export function givenBack(tally: Tally, { saidAt, today }: Moment): Tally {
  const at = tally.recent.indexOf(saidAt);
  return {
    ...tally,
    recent: at === -1 ? tally.recent : tally.recent.toSpliced(at, 1),
    today: tally.day === today.day ? Math.max(0, tally.today - 1) : tally.today,
  };
}

/** One tally for a person who was counted under two names before they were linked. */
export function joinedTallies(left: Tally, right: Tally): Tally {
  const day = left.day > right.day ? left.day : right.day;
  const pause = [left.pause, right.pause]
    .flatMap((one) => one ?? [])
    .toSorted((one, other) => other.until - one.until)[0];
  return {
    recent: [...left.recent, ...right.recent].sort((one, other) => one - other),
    day,
    today: messagesOn(left, day) + messagesOn(right, day),
    ...(pause === undefined ? {} : { pause }),
  };
}

/** Whether it no longer affects any limit. */
export function isSpent(tally: Tally, { now, today }: Pick<Moment, 'now' | 'today'>): boolean {
  const newest = tally.recent.at(-1) ?? Number.NEGATIVE_INFINITY;
  const isPaused = tally.pause !== undefined && tally.pause.until > now;
  return !isPaused && tally.day !== today.day && newest <= now - MINUTE_MS;
}

const messagesOn = (tally: Tally, day: string) => (tally.day === day ? tally.today : 0);

/** Whose limit was reached. */
export type Counted = 'person' | 'group' | 'commands';

/** The reason that `nanobot trace` shows. */
export function gateText(whose: Counted, { because }: Pause): string {
  const what = whose === 'commands' ? 'commands' : 'messages';
  const of = whose === 'group' ? t`this group` : t`one person`;
  return t`too many ${what} of ${of} in a ${because}`;
}

/** The notice for the person, once per pause. */
export function pauseNotice(
  whose: Counted,
  { because, until }: Pause,
  limits: MessageLimits,
  now: number,
): string {
  const limit = because === 'minute' ? limits.perMinute : limits.perDay;
  const what = `${limit} ${whose === 'commands' ? 'commands' : 'messages'} a ${because}`;
  const who = whose === 'group' ? t`from this group` : t`from you`;
  const left = spanWords(until - now);
  const when = because === 'day' ? t`tomorrow, in ${left}` : t`in ${left}`;
  return (
    t`Too many messages: I take ${what} ${who}. I continue ${when}. ` +
    t`I do not read messages sent until then; please send them again afterwards.`
  );
}

/** "45 seconds", "3 minutes", "5 hours": never less than a second. */
export function spanWords(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1000));
  if (seconds <= 90) return ngettext(msgid`${seconds} second`, `${seconds} seconds`, seconds);
  const minutes = Math.ceil(seconds / 60);
  if (minutes <= 90) return ngettext(msgid`${minutes} minute`, `${minutes} minutes`, minutes);
  const hours = Math.round(minutes / 60);
  return ngettext(msgid`${hours} hour`, `${hours} hours`, hours);
}
