// Limits on sent mail, against mail loops (case table D5). Decided from the durable log of sent
// mail; a proven sender does not reach them in normal use.

import { msgid, ngettext, t } from '../../../lib/texts.ts';
import type { EmailConfig } from '../settings.ts';
import { domainOf } from './address.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** How far back the log must reach. */
export const BUDGET_WINDOW_MS = 7 * DAY_MS;

export type MailLimits = EmailConfig['limits'];

export type SentReply = {
  readonly at: number;
  readonly recipient: string;
  readonly thread: string;
  /** Hash of the text, to detect the same answer twice. */
  readonly textHash: string;
  /** Nothing proved the recipient. Not recorded by earlier versions. */
  readonly isUnproven?: true;
};

export type Bounce = { readonly at: number; readonly recipient: string };

export type ReplyRequest = {
  readonly recipient: string;
  readonly thread: string;
  /** Undefined while there is no text yet. */
  readonly textHash?: string;
  /** `proven`: answers a verified or asserted sender; `letter`: answers no mail. */
  readonly to: 'proven' | 'unproven' | 'letter';
  /** Epoch milliseconds of the person's newest mail in this thread. */
  readonly lastHumanAt: number;
};

/** It is never sent; `alert`: the owner gets a notice. */
export type Refusal = { readonly reason: string; readonly alert: boolean };
/** It is sent later without further action. */
export type Wait = { readonly delayMs: number; readonly reason: string; readonly key: string };

export function refusalOf(
  request: ReplyRequest,
  sent: readonly SentReply[],
  bounces: readonly Bounce[],
  limits: MailLimits,
  now: number,
): Refusal | undefined {
  const { recipient, thread, textHash, to, lastHumanAt } = request;
  if (isPaused(bounces, recipient, limits, now)) {
    return { reason: t`the address could not be reached several times`, alert: true };
  }
  if (to !== 'proven' && bouncesTooOften(sent, bounces, limits)) {
    return { reason: t`too many mails came back`, alert: true };
  }
  const toRecipient = sent.filter((reply) => reply.recipient === recipient);
  const sinceHuman = toRecipient.filter(
    (reply) => reply.thread === thread && reply.at > lastHumanAt,
  );
  if (limits.withoutReply > 0 && sinceHuman.length >= limits.withoutReply) {
    const reason = t`${limits.withoutReply} mails in the thread without a new one from the person`;
    return { reason, alert: true };
  }
  if (to !== 'unproven') return undefined;
  const { unprovenPerDay } = limits;
  if (waitFor(unprovenPerDay, DAY_MS, toRecipient, now) > 0) {
    const reason = t`${answersText(unprovenPerDay, 'a day')} to an unproven address`;
    return { reason, alert: false };
  }
  // A machine would get the same answer forever.
  const isRepeat = toRecipient.some(
    (reply) => reply.textHash === textHash && reply.at > now - DAY_MS,
  );
  return isRepeat ? { reason: t`the same answer again`, alert: false } : undefined;
}

/** The longest wait that the limits require; undefined: none. */
export function waitOf(
  { recipient, thread, to }: ReplyRequest,
  sent: readonly SentReply[],
  limits: MailLimits,
  now: number,
): Wait | undefined {
  const toRecipient = sent.filter((reply) => reply.recipient === recipient);
  const inThread = toRecipient.filter((reply) => reply.thread === thread);
  const domain = domainOf(recipient);
  const toDomain = sent.filter(
    (reply) => reply.isUnproven === true && domainOf(reply.recipient) === domain,
  );
  const rule = (
    key: keyof MailLimits,
    windowMs: number,
    of: readonly SentReply[],
    whom: string,
  ): Wait => {
    const reason = `${answersText(limits[key], windowMs === DAY_MS ? 'a day' : t`an hour`)} ${whom}`;
    return { delayMs: waitFor(limits[key], windowMs, of, now), reason, key };
  };
  const ofSender =
    to === 'unproven'
      ? [rule('unprovenDomainPerHour', HOUR_MS, toDomain, t`to unproven addresses of one domain`)]
      : [
          rule('perHour', HOUR_MS, toRecipient, t`to one person`),
          rule('perDay', DAY_MS, toRecipient, t`to one person`),
        ];
  const lastAt = Math.max(...inThread.map((reply) => reply.at), Number.NEGATIVE_INFINITY);
  const { spacingSecs } = limits;
  const spacing: Wait = {
    delayMs: spacingSecs === 0 ? 0 : lastAt + spacingSecs * 1000 - now,
    reason: t`${spacingSecs} s between answers in a thread`,
    key: 'spacingSecs',
  };
  const longest = [
    ...ofSender,
    rule('threadPerHour', HOUR_MS, inThread, t`in a thread`),
    rule('mailboxPerHour', HOUR_MS, sent, t`of this mailbox`),
    rule('mailboxPerDay', DAY_MS, sent, t`of this mailbox`),
    spacing,
  ].reduce((a, b) => (b.delayMs > a.delayMs ? b : a));
  return longest.delayMs > 0 ? longest : undefined;
}

const answersText = (count: number, when: string) =>
  ngettext(msgid`${count} answer ${when}`, `${count} answers ${when}`, count);

/** Milliseconds until one more fits the limit; a limit of 0 means no limit. */
function waitFor(limit: number, windowMs: number, replies: readonly SentReply[], now: number) {
  if (limit === 0) return 0;
  const recent = replies
    .map((reply) => reply.at)
    .filter((at) => at > now - windowMs)
    .sort((a, b) => a - b);
  const blocking = recent.at(-limit);
  return blocking === undefined ? 0 : blocking + windowMs - now;
}

/** The state of a thread between two mails of the person. */
export type ThreadPace = {
  /** Consecutive mails that came soon after an answer. */
  readonly quick: number;
  /** When the answer was sent from which the newest mail's delay was measured. */
  readonly answerAt: number;
  /** The mail that ended the thread. */
  readonly endedBy?: string;
};

export const NO_PACE: ThreadPace = { quick: 0, answerAt: 0 };

/** The pace including one more mail, `id`; `answers`: when answers in this thread were sent. */
export function pacedBy(
  pace: ThreadPace,
  mail: { readonly id: string; readonly receivedAt: number },
  answers: readonly number[],
  { loopMails, loopSecs }: MailLimits,
): ThreadPace {
  const answerAt = Math.max(0, ...answers.filter((at) => at <= mail.receivedAt));
  if (pace.endedBy !== undefined || answerAt <= pace.answerAt) return pace;
  const isQuick = mail.receivedAt - answerAt <= loopSecs * 1000;
  const quick = isQuick ? pace.quick + 1 : 0;
  const hasEnded = loopMails > 0 && quick >= loopMails;
  return { quick, answerAt, ...(hasEnded ? { endedBy: mail.id } : {}) };
}

function isPaused(
  bounces: readonly Bounce[],
  recipient: string,
  limits: MailLimits,
  now: number,
): boolean {
  if (limits.bounces === 0) return false;
  const pauseMs = limits.bouncePauseDays * DAY_MS;
  const times = bounces
    .filter((bounce) => bounce.recipient === recipient)
    .map((bounce) => bounce.at)
    .sort((a, b) => a - b);
  return times.some((at, index) => {
    const end = times[index + limits.bounces - 1];
    return end !== undefined && end - at <= HOUR_MS && now - end < pauseMs;
  });
}

/** The share of bounces is limited over this many mails. */
const BOUNCE_SAMPLE = 50;

function bouncesTooOften(
  sent: readonly SentReply[],
  bounces: readonly Bounce[],
  { bouncePercent }: MailLimits,
): boolean {
  if (bouncePercent === 0 || sent.length < BOUNCE_SAMPLE) return false;
  const sample = [...sent].sort((a, b) => b.at - a.at).slice(0, BOUNCE_SAMPLE);
  const oldest = sample.at(-1)?.at ?? 0;
  const recent = bounces.filter((bounce) => bounce.at >= oldest - MINUTE_MS);
  return recent.length > (BOUNCE_SAMPLE * bouncePercent) / 100;
}
