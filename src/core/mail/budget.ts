// Reply budgets (case table D5): the last line against mail loops. Decided from the durable log of
// what was sent; an honest correspondence never meets these limits.

import { domainOf } from './address.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** How far back the log must reach. */
export const BUDGET_WINDOW_MS = 7 * DAY_MS;

export type SentReply = {
  readonly at: number;
  readonly recipient: string;
  readonly thread: string;
  /** Hash of the text, to notice the same answer twice. */
  readonly textHash: string;
};

export type Bounce = { readonly at: number; readonly recipient: string };

export type ReplyRequest = {
  readonly recipient: string;
  readonly thread: string;
  readonly textHash: string;
  /** The person's identity was verified or asserted. */
  readonly isAuthenticated: boolean;
  /** Epoch milliseconds of the newest mail of a person in this thread. */
  readonly lastHumanAt: number;
};

export type ReplyVerdict =
  | { readonly kind: 'send' }
  /** Goes out later by itself. */
  | { readonly kind: 'delay'; readonly delayMs: number; readonly reason: string }
  /** Never goes out; `alert` when the owner should know. */
  | { readonly kind: 'refuse'; readonly reason: string; readonly alert: boolean };

type Limit = { readonly count: number; readonly windowMs: number; readonly reason: string };

const SENDER_LIMITS: readonly Limit[] = [
  { count: 10, windowMs: HOUR_MS, reason: '10 answers an hour to one address' },
  { count: 40, windowMs: DAY_MS, reason: '40 answers a day to one address' },
];
const STRANGER_LIMIT: Limit = {
  count: 1,
  windowMs: DAY_MS,
  reason: '1 answer a day to a stranger',
};
const THREAD_LIMIT: Limit = {
  count: 6,
  windowMs: HOUR_MS,
  reason: '6 answers an hour in a thread',
};
const DOMAIN_LIMIT: Limit = {
  count: 30,
  windowMs: HOUR_MS,
  reason: '30 answers an hour to a domain',
};
const MAILBOX_LIMITS: readonly Limit[] = [
  { count: 60, windowMs: HOUR_MS, reason: '60 answers an hour' },
  { count: 300, windowMs: DAY_MS, reason: '300 answers a day' },
];
const THREAD_SPACING_MS = 20_000;
const MAX_WITHOUT_HUMAN = 3;
const BOUNCE_LIMIT = 3;
const BOUNCE_WINDOW_MS = HOUR_MS;
const BOUNCE_PAUSE_MS = 7 * DAY_MS;
/** Of this many sends, no more than the share may have bounced. */
const BOUNCE_SAMPLE = 50;
const MAX_BOUNCE_SHARE = 0.05;

const refuse = (reason: string, alert: boolean): ReplyVerdict => ({
  kind: 'refuse',
  reason,
  alert,
});

export function judgeReply(
  request: ReplyRequest,
  sent: readonly SentReply[],
  bounces: readonly Bounce[],
  now: number,
): ReplyVerdict {
  const { recipient, thread } = request;
  const toRecipient = sent.filter((reply) => reply.recipient === recipient);
  const inThread = toRecipient.filter((reply) => reply.thread === thread);
  return (
    stopped(request, sent, toRecipient, inThread, bounces, now) ??
    slowed(request, sent, toRecipient, inThread, now) ?? { kind: 'send' }
  );
}

function stopped(
  request: ReplyRequest,
  sent: readonly SentReply[],
  toRecipient: readonly SentReply[],
  inThread: readonly SentReply[],
  bounces: readonly Bounce[],
  now: number,
): ReplyVerdict | undefined {
  if (
    isSuppressed(
      bounces.filter((bounce) => bounce.recipient === request.recipient),
      now,
    )
  ) {
    return refuse('address bounces', true);
  }
  if (bouncesTooOften(sent, bounces)) return refuse('too many answers bounce', true);
  if (!request.isAuthenticated && waitFor(STRANGER_LIMIT, toRecipient, now) > 0) {
    return refuse(STRANGER_LIMIT.reason, false);
  }
  const sinceHuman = inThread.filter((reply) => reply.at > request.lastHumanAt);
  if (sinceHuman.length >= MAX_WITHOUT_HUMAN) return refuse('thread has no new mail', true);
  const repeats = toRecipient.filter(
    (reply) => reply.textHash === request.textHash && reply.at > now - DAY_MS,
  );
  // A person who wrote again may be told the same again; a machine would be told it for ever.
  const isRepeat = request.isAuthenticated
    ? repeats.some((reply) => reply.at > request.lastHumanAt)
    : repeats.length > 0;
  return isRepeat ? refuse('same answer again', false) : undefined;
}

function slowed(
  request: ReplyRequest,
  sent: readonly SentReply[],
  toRecipient: readonly SentReply[],
  inThread: readonly SentReply[],
  now: number,
): ReplyVerdict | undefined {
  const domain = domainOf(request.recipient);
  const toDomain = sent.filter((reply) => domainOf(reply.recipient) === domain);
  const waits = [
    ...SENDER_LIMITS.map((limit) => ({ limit, delayMs: waitFor(limit, toRecipient, now) })),
    { limit: THREAD_LIMIT, delayMs: waitFor(THREAD_LIMIT, inThread, now) },
    { limit: DOMAIN_LIMIT, delayMs: waitFor(DOMAIN_LIMIT, toDomain, now) },
    ...MAILBOX_LIMITS.map((limit) => ({ limit, delayMs: waitFor(limit, sent, now) })),
  ];
  const longest = waits.reduce((a, b) => (b.delayMs > a.delayMs ? b : a));
  if (longest.delayMs > 0) {
    return { kind: 'delay', delayMs: longest.delayMs, reason: longest.limit.reason };
  }
  const lastAt = Math.max(...inThread.map((reply) => reply.at), Number.NEGATIVE_INFINITY);
  const spacingMs = lastAt + THREAD_SPACING_MS - now;
  return spacingMs > 0
    ? { kind: 'delay', delayMs: spacingMs, reason: '20 s between answers' }
    : undefined;
}

/** Milliseconds until one more fits under the limit. */
function waitFor(limit: Limit, replies: readonly SentReply[], now: number): number {
  const recent = replies
    .map((reply) => reply.at)
    .filter((at) => at > now - limit.windowMs)
    .sort((a, b) => a - b);
  const blocking = recent.at(-limit.count);
  return blocking === undefined ? 0 : blocking + limit.windowMs - now;
}

function isSuppressed(bounces: readonly Bounce[], now: number): boolean {
  const times = bounces.map((bounce) => bounce.at).sort((a, b) => a - b);
  return times.some((at, index) => {
    const end = times[index + BOUNCE_LIMIT - 1];
    return end !== undefined && end - at <= BOUNCE_WINDOW_MS && now - end < BOUNCE_PAUSE_MS;
  });
}

function bouncesTooOften(sent: readonly SentReply[], bounces: readonly Bounce[]): boolean {
  if (sent.length < BOUNCE_SAMPLE) return false;
  const sample = [...sent].sort((a, b) => b.at - a.at).slice(0, BOUNCE_SAMPLE);
  const oldest = sample.at(-1)?.at ?? 0;
  const recent = bounces.filter((bounce) => bounce.at >= oldest - MINUTE_MS);
  return recent.length > BOUNCE_SAMPLE * MAX_BOUNCE_SHARE;
}
