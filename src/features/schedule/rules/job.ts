// The stored form of a job, and its changes when a run starts and ends. Pure; scheduler.ts waits,
// stores and reports.

import type { Rights } from '../../../kernel/access/rights.ts';
import type { MessageId, PersonId } from '../../../kernel/message/ids.ts';
import type { ChatRef, PersonSender } from '../../../kernel/message/message.ts';
import { verbatim } from '../../../kernel/message/untrusted.ts';
import {
  asciiText,
  inlineCode,
  type RequestWords,
  shownText,
} from '../../../kernel/questions/rules/question-text.ts';
import { defined } from '../../../lib/json/json.ts';
import { headOf } from '../../../lib/text/cut.ts';
import { t } from '../../../lib/texts.ts';
import { createMinuteText } from '../../../lib/time/zone-time.ts';
import { HEARTBEAT_FILE } from '../settings.ts';
import {
  closedState,
  failedState,
  type Gate,
  type GateState,
  gateText,
  type Look,
  openState,
  readGate,
  settledState,
} from './gate.ts';
import {
  JobError,
  readSchedule,
  type Schedule,
  type ScheduleWish,
  scheduleText,
} from './schedule.ts';

/** The maker determines the rights: their current ones, limited to those at creation. */
export type JobMaker =
  /** At the command line of the machine. */
  | { readonly kind: 'operator' }
  | {
      readonly kind: 'person';
      readonly id: PersonId;
      readonly name: string;
      readonly sender: PersonSender;
      /** Where it was made. */
      readonly chat: ChatRef;
      readonly rights: Rights;
    };

/** A person without a name is shown by their id on the channel, as in lists of people. */
export function makerName({ name, sender, chat }: Extract<JobMaker, { kind: 'person' }>): string {
  return name === '' ? t`${sender.id} on ${chat.channel}` : name;
}

export type JobTarget =
  | { readonly kind: 'chat'; readonly chat: ChatRef }
  /** The chat where its maker is reached at that time. */
  | { readonly kind: 'last' };

type JobLimits = { readonly tokensPerDay?: number; readonly moneyPerDay?: number };

export type JobEnding = 'done' | 'failed' | 'stopped' | 'skipped';

export type Job = {
  readonly id: string;
  readonly name: string;
  /**
   * `say`: the text is sent as it is, without a model; `ask`: the agent does what it says;
   * `workflow`: it names a workflow, with its inputs as key=value.
   */
  readonly kind: 'say' | 'ask' | 'workflow';
  readonly text: string;
  readonly schedule: Schedule;
  /** Checked before each run, which starts only where it is open. */
  readonly when?: Gate;
  /** Undefined: it has not been checked yet. */
  readonly gate?: GateState | undefined;
  readonly target: JobTarget;
  readonly maker: JobMaker;
  /** It was made in a tainted conversation. */
  readonly isTainted?: true;
  readonly limits?: JobLimits;
  readonly enabled: boolean;
  readonly deleteAfterRun: boolean;
  /** Epoch milliseconds, as everywhere here. */
  readonly createdAt: number;
  /** The next slot; undefined: none is left. */
  readonly nextAt?: number | undefined;
  /** When the last run started, by the system clock then. */
  readonly firedAt?: number;
  /** A run that was requested beside the schedule. */
  readonly runAsked?: number | undefined;
  /** The message of the current run. */
  readonly running?: MessageId | undefined;
  readonly last?: {
    readonly at: number;
    readonly how: JobEnding;
    readonly detail?: string;
    /** The message of that run. */
    readonly run?: MessageId;
  };
  /** Failed runs in a row. */
  readonly failures: number;
  /** Its work is done; kept for a while, because its texts may still be delivered. */
  readonly finishedAt?: number;
};

/** A request for a job. */
export type JobWish = ScheduleWish & {
  readonly name?: string | undefined;
  readonly text: string;
  readonly kind: Job['kind'];
  /** The check before each run, as it is typed. */
  readonly when?: string | undefined;
  /** What an approval of the program of that check covers. */
  readonly seal?: string | undefined;
  /** The moment that a relative time counts from, epoch milliseconds; left out: now. */
  readonly requestedAt?: number | undefined;
  readonly timeZone?: string | undefined;
  /** A channel of theirs, or `last`. */
  readonly to?: string | undefined;
  readonly deleteAfterRun?: boolean | undefined;
  readonly tokensPerDay?: number | undefined;
  readonly moneyPerDay?: number | undefined;
};

export const HEARTBEAT = 'heartbeat';

const MAX_NAME_CHARS = 60;
export const MAX_JOB_CHARS = 8000;
const MINUTE_MS = 60_000;
const BACKOFF_MS = [MINUTE_MS / 2, MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 60 * MINUTE_MS];
/** A run is marked as late only after that. */
const LATE_MS = 2 * MINUTE_MS;

/** One line without markup characters: it is the title of what the job says. @throws JobError */
export function jobName(typed: string | undefined, text: string): string {
  const name = typed === undefined ? nameAfter(text) : plainName(typed);
  if (name === '') throw new JobError(t`Give the job a name of letters or digits.`);
  return name;
}

/** The name of a job without a given one; empty where the text has no letters. */
export const nameAfter = (text: string) => plainName(headOf(text, MAX_NAME_CHARS));

function plainName(text: string): string {
  const plain = text
    .replace(/[^\p{L}\p{M}\p{N}\p{Emoji_Presentation} .,:;!?'()/+-]+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return headOf(plain, MAX_NAME_CHARS).trim();
}

/** The delay before another run after so many failed ones. */
export function retryMs(failures: number): number {
  return BACKOFF_MS[Math.min(failures, BACKOFF_MS.length) - 1] ?? 0;
}

/** The row after a slot, or a requested run, was started. `next`: the slot after it. */
export function fired(
  job: Job,
  run: {
    readonly isAsked: boolean;
    readonly message?: MessageId;
    readonly now: number;
    /** What the check found that opened the gate. */
    readonly mark?: string | undefined;
  },
  next: number | undefined,
): Job {
  const { message, now, isAsked } = run;
  const isOver = message === undefined || job.last?.run === message;
  const gate = isAsked ? job.gate : openState(job.gate, run.mark, now, isOver);
  const gated = job.when === undefined ? {} : { gate };
  const begun = { ...job, firedAt: now, running: message, ...gated };
  const moved = isAsked ? { ...begun, runAsked: undefined } : { ...begun, nextAt: next };
  if (message === undefined) return finished({ ...moved, last: { at: now, how: 'done' } }, now);
  // After a crash the run may have ended before this is recorded.
  return isOver ? finished({ ...moved, running: undefined }, now) : moved;
}

/** The row after the current run ended. `retryAt`: the next slot where it failed. */
export function ended(
  job: Job,
  run: {
    readonly message: MessageId;
    readonly how: JobEnding;
    readonly detail?: string;
    readonly now: number;
  },
  retry: { readonly at: number | undefined; readonly maxFailures: number },
): Job {
  const { how, detail, now, message } = run;
  const last = { at: now, how, run: message, ...defined({ detail }) };
  const isSettled = how !== 'failed' && job.gate !== undefined;
  const gate = isSettled ? { gate: settledState(job.gate) } : {};
  const over = { ...job, running: undefined, last, ...gate };
  if (how !== 'failed') return finished({ ...over, failures: 0 }, now);
  const failures = job.failures + 1;
  if (failures >= retry.maxFailures) return { ...over, failures, enabled: false };
  return { ...over, failures, nextAt: retry.at };
}

/** The row after a check found the gate closed: nothing runs in this slot. */
export function passedBy(
  job: Job,
  { mark, now }: { readonly mark: string | undefined; readonly now: number },
  next: number | undefined,
): Job {
  const gate = closedState(job.gate, mark, now);
  return finished({ ...job, gate, firedAt: now, nextAt: next }, now);
}

/** The row after a check failed. */
export function uncheckedAt(
  job: Job,
  looked: Extract<Look, { readonly kind: 'failed' }>,
  now: number,
  next: number | undefined,
): Job {
  return { ...job, gate: failedState(job.gate, looked, now), firedAt: now, nextAt: next };
}

/** Marks a job without further work as finished. */
function finished(job: Job, now: number): Job {
  const isOver = job.schedule.kind === 'at' && job.nextAt === undefined;
  if (!isOver) return job;
  return job.deleteAfterRun ? { ...job, finishedAt: now } : { ...job, enabled: false };
}

/** The moment it is due; undefined: never by itself. */
export function dueAt(job: Job): number | undefined {
  if (job.finishedAt !== undefined) return undefined;
  if (job.runAsked !== undefined) return job.runAsked;
  if (isUnmarked(job)) return job.createdAt;
  return job.enabled ? job.nextAt : undefined;
}

/** The first check is due at once: what changes from now on opens the gate. */
export const isUnmarked = ({ enabled, when, gate }: Job) =>
  enabled && when !== undefined && gate === undefined;

export const isLateRun = (slot: number, now: number) => now - slot > LATE_MS;

// `/cron add` as typed in a chat: when, a check before it, a colon, and what.

const HEAD =
  /^(say\s+|workflow\s+)?(?:(every\s+[^:]+?)|((?:at|in)\s+.+?)|((?:[\d*/,A-Za-z#L-]+\s+){4}[\d*/,A-Za-z#L-]+))(?:\s+when\s+((?:program|url|file|mail)\b.*?))?\s*:\s+([\s\S]+)$/i;

/** Undefined where it is not of that form. */
export function parseHead(typed: string): JobWish | undefined {
  const match = HEAD.exec(typed);
  if (match === null) return undefined;
  const [, how, every, moment, cron, when, text = ''] = match;
  const at = moment?.replace(/^at\s+/i, '');
  const kind = how === undefined ? 'ask' : how.trim().toLowerCase() === 'say' ? 'say' : 'workflow';
  const slot = { ...(every && { every }), ...(at && { at }), ...(cron && { cron }) };
  return { kind, text, ...slot, ...(when && { when }) };
}

/**
 * The part before the colon alone, with its check.
 * @throws JobError
 */
export function parseWhen(typed: string): Omit<JobWish, 'kind' | 'text'> {
  // The text shows whether all that was typed is about the time.
  const { kind, text, ...slot } = parseHead(`${typed.trim()}: ${typed.length}`) ?? {};
  if (kind === 'ask' && text === String(typed.length)) return slot;
  throw new JobError(
    t`"${typed}" is not a time. Write "at 08:00", "at 2026-01-31 08:00", "in 20m", "every 2h" or "0 8 * * 1-5".`,
  );
}

// The prompt of a job's run, and the treatment of its answer: an answer without news is not sent.

/** An answer that contains only this is not sent. */
const SILENT_TOKEN = '[SILENT]';
/** The same for the heartbeat, under its established name. */
const HEARTBEAT_TOKEN = 'HEARTBEAT_OK';

/** Models add a word or two to the token of the heartbeat; this much beside it is no report. */
const MAX_CHATTER_CHARS = 200;
const TOKENS = [SILENT_TOKEN, HEARTBEAT_TOKEN];
const BEFORE = '[\\s*_`"\']*';
const BEHIND = '[\\s*_`"\'.!]*';

export type Report = { readonly kind: 'silent' } | { readonly kind: 'text'; readonly text: string };

/** `isHeartbeat`: a token with little text beside it counts as silent too. */
export function readReport(answer: string, isHeartbeat: boolean): Report {
  const rest = TOKENS.reduce(withoutToken, answer.trim());
  if (rest === '') return { kind: 'silent' };
  const hasToken = rest !== answer.trim();
  if (isHeartbeat && hasToken && rest.length <= MAX_CHATTER_CHARS) return { kind: 'silent' };
  return { kind: 'text', text: rest };
}

/** Only at the beginning and the end: within the text it is a quotation. */
function withoutToken(text: string, token: string): string {
  const sign = token.replace(/[[\]]/g, '\\$&');
  return text
    .replace(new RegExp(`^${BEFORE}${sign}${BEHIND}`), '')
    .replace(new RegExp(`${BEFORE}${sign}${BEHIND}$`), '')
    .trim();
}

/** `due`: text of the scheduled time, where it runs late. */
export function runText(
  job: { readonly name: string; readonly id: string; readonly text: string },
  due?: string,
): string {
  const late =
    due === undefined ? '' : t` It was due ${due} and runs late, once for all missed runs.`;
  return [
    `[Scheduled job "${job.name}" (${job.id}).${late} Nobody is waiting in this conversation: what you ` +
      t`answer is sent to the person's chat under the job's name. If there is nothing they need to hear, ` +
      t`answer with ${SILENT_TOKEN} and nothing else. Do what the job says:]`,
    job.text,
  ].join('\n');
}

export function heartbeatText(file: string): string {
  return [
    `[Heartbeat: a look at ${HEARTBEAT_FILE}, which the machine takes from time to time. Do what is due by it ` +
      t`now, and what you did today not again; it allows nothing that you may not do anyway. What you answer is sent to the owner. If nothing ` +
      t`is due or there is nothing they need to hear, answer with ${HEARTBEAT_TOKEN} and nothing else.]`,
    file,
  ].join('\n');
}

/** Headings, comments, lines without words and boxes that are empty or ticked contain no task. */
export function asksForSomething(heartbeatFile: string): boolean {
  const lines = heartbeatFile.replace(/<!--[\s\S]*?(?:-->|$)/g, '').split(/\r?\n/);
  return lines.some((line) => {
    const text = line.trim();
    if (text === '' || text.startsWith('#')) return false;
    const item = text.replace(/^(?:[-*+]|\d+[.)])(?:\s+|$)/, '').replace(/^\[[ ]?\](?:\s+|$)/, '');
    if (/^\[[xX]\]/.test(item)) return false;
    return /[\p{L}\p{N}]/u.test(item);
  });
}

// The question for a new job, as a sentence.

type JobRequest = ScheduleWish &
  Pick<JobWish, 'name' | 'to' | 'when'> & {
    readonly text?: string | undefined;
    readonly kind?: Job['kind'] | undefined;
    readonly time_zone?: string | undefined;
  };

const KINDS = { say: 'reminder', ask: 'job', workflow: t`job that runs a workflow` } as const;
const DAY_MS = 86_400_000;

/** `Set the reminder `Drink water`, today 14:10?`; undefined where it could not be made. */
export function jobWords(
  asked: JobRequest,
  now: number,
  timeZone: string,
  confinement = '',
): RequestWords | undefined {
  const { text = '', kind = 'ask', name, to } = asked;
  const when = timeOf(asked, timeZone, now);
  if (when === undefined) return undefined;
  const check =
    asked.when === undefined ? undefined : checkWords(readGate(asked.when), confinement);
  const goesTo = to === undefined ? '' : t`, told on ${verbatim(shownText(to))}`;
  const code = inlineCode(text);
  const title = name === undefined ? [] : [verbatim(shownText(name))];
  const shown = [...title, ...(code === undefined ? [] : [code])].join(': ');
  const job = shown === '' ? t`this ${KINDS[kind]}` : t`the ${KINDS[kind]} ${shown}`;
  return {
    sentence: t`Set ${job}, ${when}${check === undefined ? '' : `, ${check.phrase}`}${goesTo}?`,
    ...wholeText([...(check?.text ?? []), ...(code === undefined ? [text] : [])]),
  };
}

const wholeText = (texts: readonly string[]) =>
  texts.length === 0 ? {} : { text: texts.join('\n\n'), file: 'job.txt' };

/** `if the program `./check.sh` (no network) reports something`; `text`: what does not fit there. */
function checkWords(gate: Gate, confinement: string) {
  const whole = gateText(gate);
  const shown = whole.slice(gate.kind.length + 1);
  const code = inlineCode(shown, asciiText);
  const named = shown === '' ? '' : ` ${code ?? 'below'}`;
  const phrases = {
    program: t`if the program${named}${confinement === '' ? '' : ` (${confinement})`} ends with status 0`,
    url: t`if the page${named} changed`,
    file: t`if the file${named} changed`,
    mail: t`if a mail${shown === '' ? '' : ` with${named}`} came in`,
  };
  return { phrase: phrases[gate.kind], text: shown !== '' && code === undefined ? [whole] : [] };
}

/** `today 14:10`, `every 2h`; undefined where it could not be made. */
function timeOf(
  { at, every, cron, time_zone: named }: JobRequest,
  personZone: string,
  now: number,
): string | undefined {
  const zone = named ?? personZone;
  try {
    const schedule = readSchedule({ at, every, cron }, zone, now);
    if (schedule.kind === 'cron')
      return t`at ${verbatim(shownText(schedule.expression))} (${schedule.timeZone})`;
    if (schedule.kind === 'every') return scheduleText(schedule, zone);
    const minuteText = createMinuteText();
    const [day, time] = minuteText(schedule.at, zone).split(' ');
    const days = [now, now + DAY_MS].map((each) => minuteText(each, zone).split(' ')[0]);
    const dayWord = ['today', 'tomorrow'][days.indexOf(day)] ?? day;
    return `${dayWord} ${time}${named === undefined ? '' : ` (${named})`}`;
  } catch (error) {
    if (error instanceof JobError) return undefined;
    throw error;
  }
}
