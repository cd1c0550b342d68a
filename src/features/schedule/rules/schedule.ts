// When a job runs, and the notations for it. createNextSlot evaluates cron expressions; their time
// zone is always explicit, so that a slot does not depend on the machine.

import { RequestError } from '../../../kernel/message/errors.ts';
import { t } from '../../../lib/texts.ts';
import { describeTime, zoneInForce } from '../../../lib/time/zone-names.ts';
import { createMinuteText, isTimeZone, wallMoment } from '../../../lib/time/zone-time.ts';

export type Schedule =
  /** Once; epoch milliseconds. */
  | { readonly kind: 'at'; readonly at: number }
  /** Counted from `anchor` in elapsed time, whatever local clocks do. */
  | { readonly kind: 'every'; readonly everyMs: number; readonly anchor: number }
  /** Five fields; `timeZone` is an IANA name. */
  | { readonly kind: 'cron'; readonly expression: string; readonly timeZone: string };

/** Exactly one of the three. */
export type ScheduleWish = {
  readonly at?: string | undefined;
  readonly every?: string | undefined;
  readonly cron?: string | undefined;
};

/** A job that is invalid or unknown; the message says what to write instead. */
export class JobError extends RequestError {
  override readonly name = 'JobError';
  constructor(message: string, code: 'job_invalid' | 'job_unknown' = 'job_invalid') {
    super(code, message);
  }
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** A job with a shorter interval would only wait for its own runs. */
const SHORTEST_EVERY_MS = MINUTE_MS;
const LONGEST_EVERY_MS = 366 * DAY_MS;
const UNITS_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: MINUTE_MS,
  h: 60 * MINUTE_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
};
const SPAN =
  /^(?:\d{1,6}\s*(?:s(?:ec\w*)?|m(?:in\w*)?|h(?:our\w*)?|d(?:ay\w*)?|w(?:eek\w*)?)\s*)+$/;

/** @throws JobError */
export function readSchedule(wish: ScheduleWish, timeZone: string, nowMs: number): Schedule {
  if (!isTimeZone(timeZone)) {
    throw new JobError(t`"${timeZone}" is not a time zone; write a name like "Europe/Berlin".`);
  }
  const { at, every, cron } = wish;
  const given = [at, every, cron].filter((each) => each !== undefined);
  if (given.length !== 1) {
    throw new JobError(
      t`Say when, in exactly one way: at ("2026-01-31 08:00", "08:00", "in 20m"), every ("2h", at least 1m) ` +
        t`or cron (five fields, "0 8 * * 1-5").`,
    );
  }
  if (at !== undefined) return { kind: 'at', at: readMoment(at, timeZone, nowMs) };
  if (every !== undefined) return { kind: 'every', everyMs: readEvery(every), anchor: nowMs };
  const expression = (cron ?? '').trim().replace(/\s+/g, ' ');
  const zone = zoneInForce(timeZone);
  return { kind: 'cron', expression, timeZone: zone };
}

/**
 * Whether a person chose the time of day of each slot; an interval or a step reaches it by chance.
 */
export function hasChosenTimes(schedule: Schedule): boolean {
  if (schedule.kind !== 'cron') return schedule.kind === 'at';
  const [minute = '', hour = ''] = schedule.expression.split(' ');
  return !/[*/]/.test(minute + hour);
}

/** The first slot after the moment; undefined: none. For cron expressions see createNextSlot. */
export function nextPlainSlot(
  schedule: Exclude<Schedule, { readonly kind: 'cron' }>,
  afterMs: number,
): number | undefined {
  if (schedule.kind === 'at') return schedule.at > afterMs ? schedule.at : undefined;
  const { everyMs, anchor } = schedule;
  const passed = Math.max(0, Math.floor((afterMs - anchor) / everyMs));
  return anchor + (passed + 1) * everyMs;
}

export function scheduleText(schedule: Schedule, timeZone: string): string {
  if (schedule.kind === 'at') return t`once, ${slotText(schedule.at, timeZone)}`;
  if (schedule.kind === 'every') return t`every ${spanText(schedule.everyMs)}`;
  return `${schedule.expression} (${schedule.timeZone})`;
}

/** The job's own zone for a cron job, otherwise the person's. */
export function zoneOf(schedule: Schedule, timeZone: string): string {
  return schedule.kind === 'cron' ? schedule.timeZone : timeZone;
}

/** `Friday, 2026-01-16 08:00:00 (GMT+01:00, Europe/Berlin)`. */
export function slotText(atMs: number, timeZone: string): string {
  return describeTime(atMs, timeZone) ?? new Date(atMs).toISOString();
}

function readMoment(text: string, timeZone: string, nowMs: number): number {
  const at = momentOf(text.trim(), timeZone, nowMs);
  if (at > nowMs) return at;
  throw new JobError(
    t`${slotText(at, timeZone)} is in the past; now it is ${slotText(nowMs, timeZone)}. Write a time in the future.`,
  );
}

function momentOf(text: string, timeZone: string, nowMs: number): number {
  const span = spanOf(text.toLowerCase().replace(/^in\s+/, ''));
  if (span !== undefined) return nowMs + span;
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)$/.test(text)) {
    const at = Date.parse(text);
    if (!Number.isNaN(at)) return at;
  }
  const wall = /^(?:(\d{4}-\d\d-\d\d)[T ])?(\d{1,2}:\d\d)(?::00)?$/.exec(text);
  if (wall === null) throw unknownMoment(text, timeZone, nowMs);
  const [, day, time = ''] = wall;
  const clock = time.padStart(5, '0');
  if (day !== undefined) return wallTime(`${day} ${clock}`, timeZone, text, nowMs);
  const dayOf = (at: number) => createMinuteText()(at, timeZone).slice(0, 10);
  const today = wallTime(`${dayOf(nowMs)} ${clock}`, timeZone, text, nowMs);
  if (today > nowMs) return today;
  return wallTime(`${dayOf(nowMs + DAY_MS)} ${clock}`, timeZone, text, nowMs);
}

function wallTime(wall: string, timeZone: string, typed: string, nowMs: number): number {
  const found = wallMoment(wall, timeZone);
  if (found.kind === 'moment') return found.at;
  if (found.kind === 'unknown') throw unknownMoment(typed, timeZone, nowMs);
  throw new JobError(
    t`${wall} does not exist in ${zoneInForce(timeZone)}: the clocks go forward then. ` +
      t`Write a time an hour earlier or later.`,
  );
}

function unknownMoment(text: string, timeZone: string, nowMs: number): JobError {
  const example = createMinuteText()(nowMs + DAY_MS, timeZone);
  return new JobError(
    t`"${text}" is not a clear time. Write "${example}" (read in ${zoneInForce(timeZone)}), ` +
      t`"${example.slice(-5)}" for the next time at that hour, "in 20m", or ISO 8601 with an offset.`,
  );
}

function readEvery(text: string): number {
  const bare = text
    .trim()
    .toLowerCase()
    .replace(/^every\s+/, '');
  const span = spanOf(/^\d+$/.test(bare) ? `${bare}s` : bare);
  if (span !== undefined && span >= SHORTEST_EVERY_MS && span <= LONGEST_EVERY_MS) return span;
  throw new JobError(
    t`"${text}" is not an interval for a job: write 30m, 2h, 1d or 1w, from 1m to 366d.`,
  );
}

/** `1h30m`, `20 min`, `2 days` in milliseconds; undefined where it is not a duration. */
function spanOf(text: string): number | undefined {
  if (!SPAN.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+)\s*([smhdw])/g)];
  return parts.reduce(
    (sum, [, count, unit = '']) => sum + Number(count) * (UNITS_MS[unit] ?? 0),
    0,
  );
}

function spanText(ms: number): string {
  const [unit, size] = Object.entries(UNITS_MS)
    .toReversed()
    .find(([, each]) => ms % each === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}
