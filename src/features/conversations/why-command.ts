// `/why`: what happened to a message, told from its trace, with the gate that stopped it.

import type { MessageBus, Trace, TraceStep } from '../../kernel/bus/bus.ts';
import {
  CONVERSATION,
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command-access.ts';
import type { SessionKey, TurnId } from '../../kernel/message/ids.ts';
import type { TurnOutcome } from '../../kernel/message/message.ts';
import { sessionKeyOf } from '../../kernel/message/message.ts';
import { spanWords } from '../../kernel/message/message-limits.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import { headOf } from '../../lib/text/cut.ts';
import type { ConversationService } from './conversation-commands.ts';

export const WHY_COMMANDS = {
  why: {
    summary: 'show what happened to your last message, or to the one you reply to',
    access: CONVERSATION,
    timing: 'immediate',
  },
} satisfies CommandTable;

type WhyCommandDeps = {
  readonly bus: Pick<MessageBus, 'trace'>;
  readonly conversations: Pick<ConversationService, 'outcome'>;
  readonly modes: {
    /** How several models shared the work of the turn, a line each. */
    work(session: SessionKey, turn: TurnId): Promise<readonly string[]>;
  };
};

export function whyCommands(deps: WhyCommandDeps): readonly Command[] {
  return commandsOf(WHY_COMMANDS, { why: (origin) => tellWhy(origin, deps) });
}

const UNKNOWN = 'I have no earlier message of yours here.';
const MAX_REASON_CHARS = 300;

async function tellWhy(origin: CommandOrigin, deps: WhyCommandDeps): Promise<string> {
  const trace = await meant(origin, deps);
  if (trace === undefined) return UNKNOWN;
  const ended = await endOf(trace, deps);
  const life = lifeOf(trace, origin.message.receivedAt, ended);
  return [...life, ...(await workOf(trace, deps))].join('\n');
}

/** A failed turn has an answer too, the error text: delivery alone does not tell it from a success. */
async function endOf({ session, turnId, state }: Trace, { conversations }: WhyCommandDeps) {
  if (session === undefined || turnId === undefined || state !== 'done') return undefined;
  return conversations.outcome(session, turnId);
}

/** Where several models shared the work. */
async function workOf({ session, turnId }: Trace, { modes }: WhyCommandDeps) {
  if (session === undefined || turnId === undefined) return [];
  const lines = await modes.work(session, turnId);
  return lines.length === 0 ? [] : ['Steps:', ...lines.map((line) => `- ${verbatim(line)}`)];
}

async function meant(
  { session, message }: CommandOrigin,
  { bus }: WhyCommandDeps,
): Promise<Trace | undefined> {
  const { id, replyTo, sender, group, chat } = message;
  const replied = replyTo === undefined ? undefined : await bus.trace(replyTo);
  // Whoever names an id learns nothing of other conversations.
  if (replied?.session === session || replied?.session === sessionKeyOf(chat)) return replied;
  if (sender.kind !== 'person') return undefined;
  return bus.trace({ session, besides: id, ...(group === undefined ? {} : { by: sender.id }) });
}

type Ended = TurnOutcome['kind'] | undefined;

function lifeOf(trace: Trace, now: number, ended: Ended): readonly string[] {
  const begin = trace.steps.at(0)?.at ?? now;
  const line = (step: TraceStep) => {
    const detail = step.detail === undefined ? '' : `: ${reason(step.detail)}`;
    return `- ${after(step.at - begin)} ${words(step)}${detail}`;
  };
  const what = trace.direction === 'inbound' ? 'Your message' : 'My message';
  const steps = trace.steps.map(line);
  return [
    `${what} of ${spanWords(now - begin)} ago: ${summary(trace, ended)}`,
    ...steps,
    ...trace.answers.flatMap((answer) => ['My answer:', ...answer.steps.map(line)]),
    ...(trace.turnId === undefined ? [] : [`Turn ${verbatim(trace.turnId)}`]),
  ];
}

const reason = (detail: string) => verbatim(headOf(detail, MAX_REASON_CHARS));

/** Whole seconds are shown from a minute on. */
function after(ms: number): string {
  return ms < 60_000 ? `after ${(ms / 1000).toFixed(1)} s` : `after ${spanWords(ms)}`;
}

const WORDS: Readonly<Record<string, string>> = {
  received: 'it came in',
  accepted: 'it was saved to disk',
  'turn started': 'I started on it',
  'turn finished': 'the work was done',
  'stopped at the gate': 'it was not given to the model',
  withdrawn: 'it was withdrawn',
  'set aside': 'it was set aside after every try failed',
  dropped: 'it was dropped',
  'last try failed': 'a try failed',
  queued: 'the text was ready to be sent',
  'queued again': 'it was queued to be sent again',
  sending: 'it was on its way',
  sent: 'it was delivered',
  'next try': 'it is tried again',
  bounced: 'it came back undeliverable',
  moved: 'it was delivered in another chat',
  dead: 'it could not be delivered',
  unknown: 'it is not known whether it arrived',
};

const words = ({ what }: TraceStep) => WORDS[what] ?? what;

function summary({ state, direction, answers }: Trace, ended: Ended): string {
  if (direction === 'outbound') return DELIVERY[state] ?? state;
  if (state === 'recorded') return 'it was not given to the model.';
  if (state === 'pending') return 'it is waiting or in progress.';
  if (state === 'cancelled') return 'it was withdrawn before it was answered.';
  if (state === 'dead') return 'I could not answer it; my owner can retry it.';
  if (state !== 'done') return `${state}.`;
  if (ended === 'stopped') return 'I was stopped while I worked on it.';
  if (ended === 'failed') return 'I could not do more than I told you then.';
  if (answers.length === 0) return 'I worked on it and had nothing to say.';
  const open = answers.find((answer) => answer.state !== 'sent');
  return open === undefined
    ? 'it was answered.'
    : `answered, and ${DELIVERY[open.state] ?? open.state}`;
}

const DELIVERY: Readonly<Record<string, string>> = {
  sent: 'it was delivered.',
  queued: 'the answer waits to be sent.',
  sending: 'the answer is on its way.',
  dead: 'the answer could not be delivered.',
  unknown: 'it is not known whether the answer arrived.',
  bounced: 'the answer came back undeliverable.',
};
