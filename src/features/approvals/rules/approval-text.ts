// What an owner reads before saying yes to a call: all of it, and nothing that looks like something
// else. What would not fit on one screen is not asked at all. Cases X04 and X05.

import type { ToolAccess } from '../../../kernel/access/rights.ts';
import { verbatim } from '../../../kernel/message/untrusted.ts';
import { createMinuteText } from '../../../lib/time/zone-time.ts';
import { JobError, readSchedule, scheduleText } from '../../schedule/rules/schedule.ts';

const DAY_MS = 86_400_000;
/** Longest call that is shown, characters after escaping. */
export const MAX_SHOWN_CHARS = 2000;

type CallToShow = {
  readonly tool: string;
  readonly access: ToolAccess;
  /** JSON. */
  readonly arguments: string;
  /** What it stands on beside them, a line each, its hash last. */
  readonly seal?: string;
  /** Who asks, and where, in words of ours or escaped. */
  readonly asker: string;
  readonly isTainted: boolean;
  /** How long the question can be answered. */
  readonly hours: number;
  /** Days for which a rule would hold; left out or 0: none can be given. */
  readonly alwaysDays?: number;
  /** What a rule would cover; left out: exactly this call. */
  readonly scope?: string;
  /** When it was asked for, epoch milliseconds. */
  readonly at?: number;
  /** The asker's; empty or left out: the machine's. */
  readonly timeZone?: string;
};

const DOES: Readonly<Record<ToolAccess, string>> = {
  read: 'looks into files or memory',
  web: 'asks an address on the net that could carry words away',
  say: 'speaks in the chat',
  write: 'changes files',
  rules: 'changes what I am told to do from now on',
  send: 'speaks to somebody else',
  execute: 'runs a program',
  schedule: 'changes scheduled jobs',
};

/** Undefined where the call is too long to be shown whole. */
export function approvalText(call: CallToShow): string | undefined {
  const shown = [shownArguments(call), ...shownSeal(call)].join('\n');
  if (shown.length > MAX_SHOWN_CHARS) return undefined;
  const warning = call.isTainted
    ? ['Careful: the conversation holds words of others, who may have wanted this.']
    : [];
  const job = call.access === 'schedule' ? newJob(call) : undefined;
  const question = job?.question ?? `**May I?** ${verbatim(call.tool)} ${DOES[call.access]}.`;
  return [
    `${question} Asked by ${call.asker}.`,
    ...warning,
    '',
    ...(job?.isWhole === true ? [] : [fenced(shown), '']),
    `Expires in ${hourWords(call.hours)}.`,
    ...alwaysText(call),
  ].join('\n');
}

/** Longest text of a reminder that is shown within the question, characters. */
const MAX_INLINE_CHARS = 200;

/**
 * The question for a new job in words. `isWhole`: nothing of the call is left to be shown beside it,
 * which is so of a reminder with a short text alone.
 */
function newJob({
  tool,
  arguments: json,
  at: now = 0,
  timeZone = '',
}: CallToShow): { readonly question: string; readonly isWhole: boolean } | undefined {
  const wish = JSON.parse(json) as Readonly<Record<string, unknown>>;
  if (tool !== 'cron' || wish['action'] !== 'add') return undefined;
  const when = timeOf(wish, timeZone, now);
  if (when === undefined) return undefined;
  const { action: _add, kind = 'ask', text, name, at, every, cron, time_zone, ...rest } = wish;
  if (kind !== 'say') return { question: `**Set this job?** ${when}.`, isWhole: false };
  const isWhole = Object.keys(rest).length === 0 && [name, text].every(isPlain);
  const words = [name, text].flatMap((each) => (typeof each === 'string' ? [verbatim(each)] : []));
  return {
    question: isWhole
      ? `**Set this reminder?** ${words.join(': ')}, ${when}.`
      : `**Set this reminder?** ${when}.`,
    isWhole,
  };
}

/** Shown as a code span it is what it is, and short. */
const isPlain = (value: unknown): boolean =>
  value === undefined ||
  (typeof value === 'string' &&
    value.length <= MAX_INLINE_CHARS &&
    verbatim(shownText(value)) === `\`${value}\``);

/** `today 14:10`, `every 2h`; undefined where it could not be made. */
function timeOf(
  wish: Readonly<Record<string, unknown>>,
  personZone: string,
  now: number,
): string | undefined {
  const [at, every, cron, named] = ['at', 'every', 'cron', 'time_zone'].map((key) => {
    const value = wish[key];
    return typeof value === 'string' ? value : undefined;
  });
  const zone = named ?? personZone;
  try {
    const schedule = readSchedule({ at, every, cron }, zone, now);
    if (schedule.kind === 'cron')
      return `at ${verbatim(shownText(schedule.expression))} (${schedule.timeZone})`;
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

export const hourWords = (hours: number) => (hours === 1 ? '1 hour' : `${hours} hours`);

/** How long an allow rule holds. */
export const TERMS = ['hour', 'today', 'days', 'always'] as const;
export type Term = (typeof TERMS)[number];

const EXACTLY = 'exactly this call';
const WHILE = 'while no untrusted content is in view';

function alwaysText({ alwaysDays = 0, scope = EXACTLY }: CallToShow): readonly string[] {
  if (alwaysDays === 0) return [];
  return [`A longer approval covers ${covered(scope)}, ${WHILE}; /approvals revokes it.`];
}

/** What is said of an approval for longer than once. */
export function ruleGiven(term: Term, alwaysDays: number, scope = EXACTLY): string {
  return `Allowed, and ${covered(scope)} ${TERM_WORDS[term](alwaysDays)}, ${WHILE}. /approvals revokes it.`;
}

export function termLabel(term: Term, alwaysDays: number): string {
  return term === 'always' ? 'Always allow' : `Allow ${TERM_WORDS[term](alwaysDays)}`;
}

const covered = (scope: string) => (scope === EXACTLY ? scope : verbatim(shownText(scope)));
export const TERM_WORDS: Readonly<Record<Term, (days: number) => string>> = {
  hour: () => 'for 1 hour',
  today: () => 'today',
  days: (count) => (count === 1 ? 'for one day' : `for ${count} days`),
  always: () => 'always',
};

/** One argument per line; JSON escapes what is not printed, we what is not seen or not what it seems. */
function shownArguments({ arguments: json, access }: CallToShow): string {
  const pretty = JSON.stringify(JSON.parse(json), undefined, 2);
  const isAscii = access === 'execute' || access === 'web';
  return isAscii ? blanksEscaped(pretty.replace(NOT_ASCII, escaped)) : shownText(pretty);
}

/** Which files, the hash as short as people compare it; the yes is for the whole. */
function shownSeal({ seal }: CallToShow): readonly string[] {
  if (seal === undefined || seal === '') return [];
  const short = seal.replace(/(sha256:[0-9a-f]{12})[0-9a-f]+$/gm, '$1');
  return ['', 'runs:', ...short.replace(NOT_ASCII, escaped).split('\n')].map(blanksEscaped);
}

/** The text with everything escaped that is not seen or not what it seems. */
export function shownText(text: string): string {
  return blanksEscaped(mixedScriptsEscaped(text).replace(NOT_SEEN, escaped));
}

const blanksEscaped = (text: string) =>
  text.replace(LONG_BLANK, (blank) => ` ${escaped(blank.slice(1))}`);

/** As a code block that nothing in the text can end. */
export function fenced(text: string): string {
  const fence = '`'.repeat(Math.max(3, longestRun(text) + 1));
  return [fence, text, fence].join('\n');
}

const NOT_ASCII = /[^\n\x20-\x7e]/g;
const NOT_SEEN =
  /(?!\n)[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}|\p{Default_Ignorable_Code_Point}|\u2800|[\u{FE00}-\u{FE0F}]/gu;
/** Not the indentation of ours, which stands at the beginning of a line. */
const LONG_BLANK = /(?<=\S) {3,}/g;
const WORD = /[\p{L}\p{M}\p{N}_@.-]+/gu;
const LATIN = /\p{Script=Latin}/u;
const OTHER_LETTER = /(?!\p{Script=Latin}|\p{Script=Common}|\p{Script=Inherited})\p{L}/gu;

/** In a word of Latin letters one of another script only looks like one. */
function mixedScriptsEscaped(text: string): string {
  return text.replace(WORD, (word) =>
    LATIN.test(word) ? word.replace(OTHER_LETTER, escaped) : word,
  );
}

function escaped(text: string): string {
  return Array.from({ length: text.length }, (_, at) => {
    return `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`;
  }).join('');
}

function longestRun(text: string): number {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
}
