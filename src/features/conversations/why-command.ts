// The commands `/why`: what happened to a message, from its trace, with the gate that stopped it;
// and `/trust`: why a conversation is tainted, and ending the taint for an hour.

import type { Agent } from '../../agent/agent.ts';
import type { ContextReport } from '../../agent/rules/context-fit.ts';
import type { TaintSource } from '../../agent/rules/taint.ts';
import type { MessageBus, Trace, TraceStep } from '../../kernel/bus/bus.ts';
import {
  CONVERSATION,
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
  OWNER_ONLY,
  tracedMessage,
} from '../../kernel/commands/command-access.ts';
import type { InboundMessage, TurnOutcome } from '../../kernel/message/message.ts';
import { spanWords } from '../../kernel/message/message-limits.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import type { SessionSettingsStore } from '../../kernel/turns/origins.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createMinuteText } from '../../lib/time/zone-time.ts';
import type { ModeService } from '../modes/index.ts';

export const WHY_COMMANDS = {
  why: {
    summary: t`show what happened to your last message, or to the one you reply to`,
    access: CONVERSATION,
    timing: 'immediate',
  },
  trust: {
    summary: t`show why this conversation is tainted, and end that for an hour`,
    usage: '/trust [1h | off]',
    access: OWNER_ONLY,
    timing: 'in_order',
  },
} satisfies CommandTable;

type WhyCommandDeps = {
  readonly bus: Pick<MessageBus, 'trace'>;
  readonly agent: Pick<Agent, 'outcome'>;
  /** What the next call would use, for the sender. */
  context(message: InboundMessage): Promise<ContextReport>;
  readonly settings: SessionSettingsStore;
  readonly clock: Clock;
  /** Whether an owner wrote it in a private chat. */
  isOwnerHere(message: InboundMessage): Promise<boolean>;
  /** IANA zone of the author; empty: the machine's. */
  zoneOf(message: InboundMessage): Promise<string>;
  readonly modes: Pick<ModeService, 'work'>;
};

export function whyCommands(deps: WhyCommandDeps): readonly Command[] {
  return commandsOf(WHY_COMMANDS, {
    why: (origin) => tellWhy(origin, deps),
    trust: (origin, argument) => trust(origin, argument.trim().toLowerCase(), deps),
  });
}

const UNKNOWN = t`I have no earlier message of yours here.`;
const MAX_REASON_CHARS = 300;

async function tellWhy(origin: CommandOrigin, deps: WhyCommandDeps): Promise<string> {
  const trace = await tracedMessage(origin, deps.bus);
  if (trace === undefined) return UNKNOWN;
  const ended = await endOf(trace, deps);
  const life = lifeOf(trace, origin.message.receivedAt, ended);
  return [...life, ...(await workOf(trace, deps))].join('\n');
}

/**
 * A failed turn has an answer too, the error text, so that delivery alone does not show a success.
 */
async function endOf({ session, turnId, state }: Trace, { agent }: WhyCommandDeps) {
  if (session === undefined || turnId === undefined || state !== 'done') return undefined;
  return agent.outcome(session, turnId);
}

/** For turns that several models shared. */
async function workOf({ session, turnId }: Trace, { modes }: WhyCommandDeps) {
  if (session === undefined || turnId === undefined) return [];
  const lines = await modes.work(session, turnId);
  return lines.length === 0 ? [] : ['Steps:', ...lines.map((line) => `- ${verbatim(line)}`)];
}

type Ended = TurnOutcome['kind'] | undefined;

function lifeOf(trace: Trace, now: number, ended: Ended): readonly string[] {
  const begin = trace.steps.at(0)?.at ?? now;
  const line = (step: TraceStep) => {
    const detail = step.detail === undefined ? '' : `: ${reason(step.detail)}`;
    return `- ${after(step.at - begin)} ${stepWords(step)}${detail}`;
  };
  const what = trace.direction === 'inbound' ? t`Your message` : 'My message';
  const steps = trace.steps.map(line);
  return [
    t`${what} of ${spanWords(now - begin)} ago: ${summary(trace, ended)}`,
    ...steps,
    ...trace.answers.flatMap((answer) => ['My answer:', ...answer.steps.map(line)]),
    ...(trace.turnId === undefined ? [] : [t`Turn ${verbatim(trace.turnId)}`]),
  ];
}

const reason = (detail: string) => verbatim(headOf(detail, MAX_REASON_CHARS));

/** Whole seconds are shown from a minute on. */
function after(ms: number): string {
  return ms < 60_000 ? t`after ${(ms / 1000).toFixed(1)} s` : t`after ${spanWords(ms)}`;
}

const WORDS: Readonly<Record<string, string>> = {
  received: t`it came in`,
  accepted: t`it was saved to disk`,
  'turn started': t`I started on it`,
  'turn finished': t`the work was done`,
  'stopped at the gate': t`it was not given to the model`,
  withdrawn: t`it was withdrawn`,
  'set aside': t`it was set aside after every try failed`,
  dropped: t`it was dropped`,
  'last try failed': t`a try failed`,
  queued: t`the text was ready to be sent`,
  'queued again': t`it was queued to be sent again`,
  sending: t`it was on its way`,
  sent: t`it was delivered`,
  'next try': t`it is tried again`,
  bounced: t`it came back undeliverable`,
  moved: t`it was delivered in another chat`,
  dead: t`it could not be delivered`,
  unknown: t`it is not known whether it arrived`,
};

/** A step of a message's life, for people. */
export const stepWords = ({ what }: TraceStep) => WORDS[what] ?? what;

function summary({ state, direction, answers }: Trace, ended: Ended): string {
  if (direction === 'outbound') return DELIVERY[state] ?? state;
  if (state === 'recorded') return t`it was not given to the model.`;
  if (state === 'pending') return t`it is waiting or in progress.`;
  if (state === 'cancelled') return t`it was withdrawn before it was answered.`;
  if (state === 'dead') return t`I could not answer it; my owner can retry it.`;
  if (state !== 'done') return `${state}.`;
  if (ended === 'stopped') return t`I was stopped while I worked on it.`;
  if (ended === 'failed') return t`I could not do more than I told you then.`;
  if (answers.length === 0) return t`I worked on it and had nothing to say.`;
  const open = answers.find((answer) => answer.state !== 'sent');
  return open === undefined
    ? t`it was answered.`
    : t`answered, and ${DELIVERY[open.state] ?? open.state}`;
}

const DELIVERY: Readonly<Record<string, string>> = {
  sent: t`it was delivered.`,
  queued: t`the answer waits to be sent.`,
  sending: t`the answer is on its way.`,
  dead: t`the answer could not be delivered.`,
  unknown: t`it is not known whether the answer arrived.`,
  bounced: t`the answer came back undeliverable.`,
};

// What taints a conversation, for people. An owner who has reviewed it may end the taint for an
// hour, including new untrusted content within the hour; the approval policy still applies.

const HOUR_MS = 3_600_000;
const MAX_SOURCES = 10;
const MAX_SOURCE_CHARS = 120;
const NOT_TAINTED = t`Nothing untrusted is in view. I ask only for what the approvals policy says (/whoami).`;
const NOT_HERE = t`Only my owner can end it, in a private chat.`;
const TRUST_USAGE = t`Usage: /trust, /trust 1h or /trust off.`;
const HOW_IT_ENDS = t`It ends when this is no longer in view, or with /new. \`/trust 1h\` ends it for an hour.`;

async function trust(
  { session, message }: CommandOrigin,
  wanted: string,
  { context, settings, clock, isOwnerHere, zoneOf }: WhyCommandDeps,
): Promise<string> {
  if (!['', '1h', 'off'].includes(wanted)) return TRUST_USAGE;
  if (wanted !== '' && !(await isOwnerHere(message))) return NOT_HERE;
  const report = await context(message);
  if (report.untrusted.length === 0 && wanted !== 'off') return NOT_TAINTED;
  if (wanted !== '') {
    const trustedUntil = wanted === '1h' ? clock.now() + HOUR_MS : undefined;
    await settings.change(session, { trustedUntil });
  }
  return taintText(await context(message), clock.now(), await zoneOf(message));
}

export function taintText(
  { untrusted, trustedUntil = 0 }: Pick<ContextReport, 'untrusted' | 'trustedUntil'>,
  now: number,
  timeZone: string,
): string {
  const since = untrusted.find(({ at }) => at !== undefined)?.at;
  if (untrusted.length === 0) return NOT_TAINTED;
  const timeOf = (at: number) => clockText(at, now, timeZone);
  const older = untrusted.length - MAX_SOURCES;
  const isEnded = now < trustedUntil;
  return [
    isEnded
      ? t`You ended the taint until ${timeOf(trustedUntil)}; until then I ask only for what the approvals policy says. /trust off brings it back. In view:`
      : t`Tainted${since === undefined ? '' : t` since ${timeOf(since)}`}: programs, tools of servers, jobs, letters and rules need your approval each time, because this is in view:`,
    ...(older > 0 ? [t`- ${older} older`] : []),
    ...untrusted.slice(-MAX_SOURCES).map((source) => `- ${sourceText(source, timeOf)}`),
    ...(isEnded ? [] : [HOW_IT_ENDS]),
  ].join('\n');
}

const sourceText = ({ what, at }: TaintSource, timeOf: (at: number) => string) =>
  `${verbatim(headOf(what, MAX_SOURCE_CHARS))}${at === undefined ? '' : `, ${timeOf(at)}`}`;

const minuteText = createMinuteText();
const DAY_CHARS = 'YYYY-MM-DD'.length;

/** With the day only where it is not today. */
function clockText(at: number, now: number, timeZone: string): string {
  const text = minuteText(at, timeZone);
  const isToday = text.slice(0, DAY_CHARS) === minuteText(now, timeZone).slice(0, DAY_CHARS);
  return isToday ? text.slice(DAY_CHARS + 1) : text;
}
