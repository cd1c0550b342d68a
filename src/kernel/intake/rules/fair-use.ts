// How many messages one person, or one group together, may have answered: so many in any minute, so
// many in a day. Pure rules; who counts as one and what is kept of the counts is the gateway's.

import type { LocalDay } from '../../../lib/time/zone-time.ts';

/** 0: no limit. */
export type MessageLimits = { readonly perMinute: number; readonly perDay: number };

export type Pause = {
  /** Epoch milliseconds. */
  readonly until: number;
  readonly because: 'minute' | 'day';
};

export type Tally = {
  /** When the messages of the last minute were said, ascending, epoch milliseconds. */
  readonly recent: readonly number[];
  readonly day: string;
  /** Messages of that day. */
  readonly today: number;
  readonly pause?: Pause;
};

export type Moment = {
  /** When the message was said, at most now: what waited during an outage is no flood. */
  readonly saidAt: number;
  readonly now: number;
  readonly today: LocalDay;
};

type FairUseVerdict =
  | { readonly kind: 'take' }
  /** `isNew`: the pause begins with this message. */
  | { readonly kind: 'refuse'; readonly pause: Pause; readonly isNew: boolean };

export const MINUTE_MS = 60_000;
/** Owners pay for it themselves; the limit only ends what runs away. */
const OWNER_FACTOR = 10;
/** Commands ask no model; this only keeps a flood of them from costing anything else. */
export const COMMAND_LIMITS: MessageLimits = { perMinute: 60, perDay: 0 };

export const NO_MESSAGES: Tally = { recent: [], day: '', today: 0 };

export function ownerLimits({ perMinute, perDay }: MessageLimits): MessageLimits {
  return { perMinute: perMinute * OWNER_FACTOR, perDay: perDay * OWNER_FACTOR };
}

/**
 * Whether one more message fits. After a minute that was too full it is quiet for a whole minute
 * from the last message that was taken, so that one word about it is enough.
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

/** A limit that was lifted ends its pause, one of a day also where it was only raised. */
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

/** The tally without a message that turned out to be counted already. */
export function givenBack(tally: Tally, { saidAt, today }: Moment): Tally {
  const at = tally.recent.indexOf(saidAt);
  return {
    ...tally,
    recent: at === -1 ? tally.recent : tally.recent.toSpliced(at, 1),
    today: tally.day === today.day ? Math.max(0, tally.today - 1) : tally.today,
  };
}

/** One tally for somebody who was counted under two names before it was known to be one person. */
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

/** Nothing in it limits anybody any more. */
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
  const of = whose === 'group' ? 'this group' : 'one person';
  return `too many ${what} of ${of} in a ${because}`;
}

/** What the person is told, once per pause. */
export function pauseNotice(
  whose: Counted,
  { because, until }: Pause,
  limits: MessageLimits,
  now: number,
): string {
  const limit = because === 'minute' ? limits.perMinute : limits.perDay;
  const what = `${limit} ${whose === 'commands' ? 'commands' : 'messages'} a ${because}`;
  const who = whose === 'group' ? 'from this group' : 'from you';
  const left = spanWords(until - now);
  const when = because === 'day' ? `tomorrow, in ${left}` : `in ${left}`;
  return (
    `Too many messages: I take ${what} ${who}. I continue ${when}. ` +
    'I do not read messages sent until then; please send them again afterwards.'
  );
}

/** "45 seconds", "3 minutes", "5 hours": never less than a second. */
export function spanWords(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1000));
  if (seconds <= 90) return counted(seconds, 'second');
  const minutes = Math.ceil(seconds / 60);
  return minutes <= 90 ? counted(minutes, 'minute') : counted(Math.round(minutes / 60), 'hour');
}

const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;
