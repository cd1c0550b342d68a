// How fast messages may leave so that an account does not look like a machine (case W14): a bucket
// per chat and for the account, a pause between any two, few first contacts a day, and the same
// text to few chats an hour. Decides from values only; whoever must wait is sent later, never dropped.

const MINUTE_MS = 60_000;
/** Within this time a text to many chats is noticed. */
export const TEXT_WINDOW_MS = 3_600_000;
/** The quota of first contacts counts over this time. */
export const CONTACT_WINDOW_MS = 86_400_000;
/** Share of a minute's messages that may go one right after the other. */
const BURST_SHARE = 1 / 4;

/** `channels.whatsapp.pacing`. */
export type PacingLimits = {
  readonly chatPerMinute: number;
  readonly accountPerMinute: number;
  readonly minGapMs: number;
  readonly maxGapMs: number;
  readonly firstContactsPerDay: number;
  readonly identicalTexts: number;
};

export type PacedSend = {
  readonly chat: string;
  /** The person in this chat never wrote. */
  readonly isFirstContact: boolean;
  /** Names the text, e.g. its hash; undefined: a part or an edit of one that was named before. */
  readonly text?: string;
  /** Asked for by the person: remembered, but not slowed down for being the same as others. */
  readonly isAnswer: boolean;
};

/** What a chat got, and when: epoch milliseconds. */
export type Sighting = { readonly chat: string; readonly at: number };

/** What was sent so far. Times are epoch milliseconds; what no longer matters is left out. */
export type PaceState = {
  /** When each chat's bucket is full again. */
  readonly chats: ReadonlyMap<string, number>;
  readonly account: number;
  /** No message before this. */
  readonly gapUntil: number;
  /** The chats first written to, oldest first. */
  readonly firstContacts: readonly Sighting[];
  /** By text, the chats that got it, oldest first. */
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

/** How long this message must wait at least, 0 when it may go now, and for which limit. */
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

/** The state once this message went out at `now`; `random`, 0 to 1, draws the pause behind it. */
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
  const texts = new Map<string, readonly Sighting[]>();
  for (const [text, sightings] of state.texts) {
    const recent = within(sightings, TEXT_WINDOW_MS, now);
    if (recent.length > 0) texts.set(text, recent);
  }
  if (send.text !== undefined) {
    texts.set(send.text, withSighting(texts.get(send.text) ?? [], send.chat, now));
  }
  const spread = longestGapMs(limits) - limits.minGapMs;
  return {
    chats,
    account: bucketAfter(state.account, limits.accountPerMinute, now),
    gapUntil: now + limits.minGapMs + Math.round(spread * random),
    firstContacts: send.isFirstContact
      ? withSighting(firstContacts, send.chat, now)
      : firstContacts,
    texts,
  };
}

const longestGapMs = ({ minGapMs, maxGapMs }: PacingLimits) => Math.max(minGapMs, maxGapMs);

/**
 * Burst and refill together never let more than `perMinute` pass in 60 seconds: a burst of b and one
 * more each 60 / (perMinute + 1 - b) seconds.
 */
function bucketOf(perMinute: number): { readonly burst: number; readonly intervalMs: number } {
  const burst = Math.ceil(perMinute * BURST_SHARE);
  return { burst, intervalMs: Math.ceil(MINUTE_MS / (perMinute + 1 - burst)) };
}

function bucketWaitMs(fullAt: number, perMinute: number, now: number): number {
  const { burst, intervalMs } = bucketOf(perMinute);
  // A clock that was set back must not stop the account.
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

/** Until fewer than `count` other chats stand in the window; a chat in it already may go on. */
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

/** Of the last `windowMs`; what a clock that was set back calls future is from now. */
function within(sightings: readonly Sighting[], windowMs: number, now: number) {
  return sightings
    .filter(({ at }) => at > now - windowMs)
    .map((sighting) => (sighting.at > now ? { ...sighting, at: now } : sighting));
}

function withSighting(sightings: readonly Sighting[], chat: string, at: number) {
  return sightings.some((sighting) => sighting.chat === chat)
    ? sightings
    : [...sightings, { chat, at }];
}
