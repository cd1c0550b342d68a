// How fast messages may be sent so that an account does not look like a machine (case W14): a
// bucket per chat and for the account, a pause between any two, few first contacts a day, and the
// same text to few chats an hour. Decides from values only; a message that must wait is sent later,
// never dropped.

import type { WhatsAppConfig } from '../settings.ts';

const MINUTE_MS = 60_000;
/** The limit for one text to many chats counts over this time. */
export const TEXT_WINDOW_MS = 3_600_000;
/** The quota of first contacts counts over this time. */
export const CONTACT_WINDOW_MS = 86_400_000;
/** Share of a minute's messages that may be sent without a pause. */
const BURST_SHARE = 1 / 4;

export type PacingLimits = WhatsAppConfig['pacing'];

export type PacedSend = {
  readonly chat: string;
  /** The person in this chat never wrote. */
  readonly isFirstContact: boolean;
  /** Identifies the text, e.g. by its hash; undefined: a part or an edit of an earlier text. */
  readonly text?: string;
  /** Requested by the person: recorded, but not delayed for being the same as others. */
  readonly isAnswer: boolean;
};

/** A chat and a time, epoch milliseconds. */
export type Sighting = { readonly chat: string; readonly at: number };

/** What was sent so far. Times are epoch milliseconds; irrelevant entries are left out. */
export type PaceState = {
  /** When each chat's bucket is full again. */
  readonly chats: ReadonlyMap<string, number>;
  readonly account: number;
  /** No message before this time. */
  readonly gapUntil: number;
  /** Chats that got a first contact, oldest first. */
  readonly firstContacts: readonly Sighting[];
  /** By text, the chats that got it, oldest first; the last text to be sent to a further chat last. */
  readonly texts: ReadonlyMap<string, readonly Sighting[]>;
};

export const UNPACED: PaceState = {
  chats: new Map(),
  account: 0,
  gapUntil: 0,
  firstContacts: [],
  texts: new Map(),
};

type PaceLimit = 'gap' | 'chat' | 'account' | 'first contacts' | 'identical text';
export type Wait = { readonly waitMs: number; readonly limit: PaceLimit };

/** The shortest wait for this message and the limit that causes it; 0 if it may be sent now. */
export function paceWait(
  state: PaceState,
  send: PacedSend,
  limits: PacingLimits,
  now: number,
): Wait {
  const waits: readonly Wait[] = [
    { limit: 'gap', waitMs: Math.min(state.gapUntil - now, longestGapMs(limits)) },
    {
      limit: 'account',
      waitMs: bucketWaitMs(state.account, limits.accountPerMinute, now),
    },
    {
      limit: 'chat',
      waitMs: bucketWaitMs(state.chats.get(send.chat) ?? 0, limits.chatPerMinute, now),
    },
    { limit: 'identical text', waitMs: textWaitMs(state, send, limits, now) },
    { limit: 'first contacts', waitMs: contactWaitMs(state, send, limits, now) },
  ];
  const longest = waits.reduce((a, b) => (b.waitMs > a.waitMs ? b : a));
  return { ...longest, waitMs: Math.max(0, longest.waitMs) };
}

/**
 * The state after this message was sent at `now`; `random`, 0 to 1, draws the pause after it. Its
 * texts are the same: there are too many to copy them for each message, see `textsAfter`.
 */
export function paceSent(
  state: PaceState,
  send: PacedSend,
  limits: PacingLimits,
  now: number,
  random: number,
): PaceState {
  const chats = new Map([...state.chats].filter(([, fullAt]) => fullAt > now));
  chats.set(send.chat, bucketAfter(chats.get(send.chat) ?? 0, limits.chatPerMinute, now));
  const firstContacts = within(state.firstContacts, CONTACT_WINDOW_MS, now);
  const spread = longestGapMs(limits) - limits.minGapMs;
  return {
    chats,
    account: bucketAfter(state.account, limits.accountPerMinute, now),
    gapUntil: now + limits.minGapMs + Math.round(spread * random),
    firstContacts: send.isFirstContact
      ? withSighting(firstContacts, send.chat, now)
      : firstContacts,
    texts: state.texts,
  };
}

/**
 * What changes about the texts when this message is sent at `now`: those that expire, and the chats
 * of its own text if there is a further one.
 */
export function textsAfter({ texts }: PaceState, { text, chat }: PacedSend, now: number) {
  const expired: string[] = [];
  for (const [one, sightings] of texts) {
    if (within(sightings, TEXT_WINDOW_MS, now).length > 0) break;
    expired.push(one);
  }
  const recent = within((text && texts.get(text)) || [], TEXT_WINDOW_MS, now);
  const isNew = text !== undefined && !recent.some((sighting) => sighting.chat === chat);
  return { expired, sightings: isNew ? recent.concat({ chat, at: now }) : undefined };
}

const longestGapMs = ({ minGapMs, maxGapMs }: PacingLimits) => Math.max(minGapMs, maxGapMs);

/**
 * Burst and refill together never allow more than `perMinute` in 60 seconds: a burst of b and one
 * more every 60 / (perMinute + 1 - b) seconds.
 */
function bucketOf(perMinute: number): { readonly burst: number; readonly intervalMs: number } {
  const burst = Math.ceil(perMinute * BURST_SHARE);
  return { burst, intervalMs: Math.ceil(MINUTE_MS / (perMinute + 1 - burst)) };
}

function bucketWaitMs(fullAt: number, perMinute: number, now: number): number {
  const { burst, intervalMs } = bucketOf(perMinute);
  // A clock that was set back must not block the account.
  const missingMs = Math.min(fullAt - now, burst * intervalMs);
  return missingMs - (burst - 1) * intervalMs;
}

function bucketAfter(fullAt: number, perMinute: number, now: number): number {
  const { burst, intervalMs } = bucketOf(perMinute);
  return Math.min(Math.max(fullAt, now) + intervalMs, now + burst * intervalMs);
}

function textWaitMs(
  { texts }: PaceState,
  { text, chat, isAnswer }: PacedSend,
  { identicalTexts }: PacingLimits,
  now: number,
): number {
  if (text === undefined || isAnswer) return 0;
  const recent = within(texts.get(text) ?? [], TEXT_WINDOW_MS, now);
  return windowWaitMs(recent, chat, identicalTexts, TEXT_WINDOW_MS, now);
}

function contactWaitMs(
  { firstContacts }: PaceState,
  { chat, isFirstContact }: PacedSend,
  { firstContactsPerDay }: PacingLimits,
  now: number,
): number {
  if (!isFirstContact) return 0;
  if (firstContactsPerDay === 0) return CONTACT_WINDOW_MS;
  const recent = within(firstContacts, CONTACT_WINDOW_MS, now);
  return windowWaitMs(recent, chat, firstContactsPerDay, CONTACT_WINDOW_MS, now);
}

/** Until fewer than `count` other chats are in the window; a chat in it may continue. */
function windowWaitMs(
  recent: readonly Sighting[],
  chat: string,
  count: number,
  windowMs: number,
  now: number,
): number {
  if (recent.some((sighting) => sighting.chat === chat)) return 0;
  const blocking = recent.at(-count);
  return blocking === undefined ? 0 : blocking.at + windowMs - now;
}

/** Those of the last `windowMs`; times in the future, after a clock was set back, count as now. */
const within = (sightings: readonly Sighting[], windowMs: number, now: number) =>
  upTo(
    sightings.filter(({ at }) => at > now - windowMs),
    now,
  );

export const upTo = (sightings: readonly Sighting[], now: number): readonly Sighting[] =>
  sightings.map((sighting) => (sighting.at > now ? { ...sighting, at: now } : sighting));

function withSighting(sightings: readonly Sighting[], chat: string, at: number) {
  return sightings.some((sighting) => sighting.chat === chat)
    ? sightings
    : [...sightings, { chat, at }];
}
