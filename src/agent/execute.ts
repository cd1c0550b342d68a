// Executing: runs the tools that a model called. Consecutive reads run concurrently, everything
// else one by one in order; the result of a call with effects is on the disk before the next call
// starts.

import { isRepeatable } from '../kernel/access/rights.ts';
import { type AgentEvent, previewOf } from '../kernel/message/message.ts';
import type { ToolCall, ToolEntry } from '../kernel/message/transcript.ts';
import { resultIdOf } from '../kernel/sessions/rules/earlier.ts';
import { defined } from '../lib/json/json.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { BoundCall, Toolbox, ToolOutcome } from '../tools/tool.ts';
import type { ApprovedCall } from './agent.ts';
import { type CallReport, isBlockedRound, openCallsOf } from './rules/turn-closing.ts';
import type { SignalOf, StateOf } from './rules/turn-state.ts';
import { blockedCalls, permissionFor, runCall } from './run-call.ts';
import type { AgentSettings } from './settings.ts';
import { countSent } from './stream.ts';
import type { TurnContext } from './turn-context.ts';

type Planned = {
  readonly call: ToolCall;
  readonly bound: BoundCall;
  /** A report means that the call is not run. */
  readonly blocked: CallReport | undefined;
};

const MAX_PARALLEL_READS = 8;
const STOPPED_WHILE_RUNNING = '[outcome unknown: the turn was stopped while this ran]';
const NOT_BEGUN = {
  status: 'failed',
  text: '[not run: the turn was stopped before this call began]',
  failure: 'cancelled',
} as const;

export async function* executeCalls(
  turn: TurnContext,
  { calls }: StateOf<'executing'>,
): AsyncGenerator<AgentEvent, SignalOf<'executing'>, void> {
  const blocked = blockedCalls(turn);
  const planned = calls.map((call) => ({
    call,
    bound: turn.toolbox.bind(call.name, call.arguments),
    blocked: blocked.get(call),
  }));
  const groups = groupsOf(planned);
  for (const [index, group] of groups.entries()) {
    if (turn.signal.aborted) await recordNotRun(turn, groups.slice(index).flat());
    turn.signal.throwIfAborted();
    yield* runGroup(turn, group);
  }
  turn.thread.commitBehind();
  const round = turn.thread.rounds.at(-1) ?? [];
  if (blocked.size > 0) turn.log.info('tool calls not executed', { calls: blocked.size });
  return {
    type: 'executed',
    messagesSent: countSent(calls, turn.thread.results, turn.toolbox),
    isBlocked: isBlockedRound(round),
  };
}

function isRead({ bound, blocked }: Planned): boolean {
  if (blocked !== undefined) return true;
  return bound.kind === 'refused' || isRepeatable(bound.access);
}

function groupsOf(planned: readonly Planned[]): readonly (readonly Planned[])[] {
  const groups: Planned[][] = [];
  for (const each of planned) {
    const last = groups.at(-1);
    const joins =
      last !== undefined && last.length < MAX_PARALLEL_READS && isRead(each) && last.every(isRead);
    if (joins) last.push(each);
    else groups.push([each]);
  }
  return groups;
}

/** Known for certain here; after a crash it could only be guessed. */
async function recordNotRun(turn: TurnContext, planned: readonly Planned[]): Promise<void> {
  const effects = planned.filter((each) => !isRead(each));
  const entries = effects.map(({ call }) => toolEntry(turn, call, NOT_BEGUN));
  await turn.thread.record(entries, { durable: true });
}

async function* runGroup(
  turn: TurnContext,
  group: readonly Planned[],
): AsyncGenerator<AgentEvent, void, void> {
  for (const { call, bound } of group) {
    const detail = bound.kind === 'ready' ? bound.detail : '';
    yield { type: 'tool_started', callId: call.id, name: call.name, detail };
  }
  const running = new Map(
    group.map((each) => [each, reportOf(turn, each).then((report) => ({ each, report }))]),
  );
  while (running.size > 0) {
    const { each, report } = yield* turn.notices.during(Promise.race(running.values()));
    running.delete(each);
    await recordReport(turn, each, report);
    const ended = report.status === 'ok' ? 'ok' : 'failed';
    const status = report.isWaiting === true ? 'waiting' : ended;
    const preview = previewOf(report.text);
    const failure = report.failure === undefined ? {} : { failure: report.failure };
    yield { type: 'tool_finished', callId: each.call.id, status, ...failure, preview };
  }
}

async function reportOf(turn: TurnContext, { call, bound, blocked }: Planned) {
  if (blocked !== undefined) return blocked;
  const report = await runCall(turn, call, bound);
  return turn.mode?.shown === undefined ? report : turn.mode.shown(call, report, turn.signal);
}

async function recordReport(turn: TurnContext, each: Planned, report: CallReport): Promise<void> {
  const isBrokenOff = turn.signal.aborted && report.status !== 'ok';
  // A read that was aborted simply runs again.
  if (isBrokenOff && isRead(each)) return;
  const { status, text, failure } = report;
  const entry = toolEntry(
    turn,
    each.call,
    isBrokenOff
      ? { status: 'unknown', text: STOPPED_WHILE_RUNNING }
      : { status, text, ...(failure === undefined ? {} : { failure }) },
  );
  const { whole, media, isBlocked, isForeign } = report;
  const marked = { ...entry, ...defined({ whole, media, isBlocked, isForeign }) };
  await turn.thread.record([marked], { durable: !isRead(each) });
}

// Settles tool calls that a killed process left without a result. Reads run again; other calls
// never do: the model is told and decides.

const OUTCOME_UNKNOWN = '[outcome unknown: the process stopped while this ran]';
const NOT_RUN = '[not run: the process stopped before this call began]';

/** Records what is known of the others and returns the calls that may run again, in order. */
export async function settleInterruptedCalls(turn: TurnContext): Promise<readonly ToolCall[]> {
  const { thread, toolbox } = turn;
  const open = openCallsOf(thread.own);
  const bound = new Map(open.map((call) => [call, toolbox.bind(call.name, call.arguments)]));
  // A tool that is missing now may have existed when the call started, e.g. one of a tool server.
  const gone = open.filter((call) => isGone(bound.get(call)));
  const blocked = blockedCalls(turn);
  const known = open.filter(
    (call) => !blocked.has(call) && hasEffects(turn, call, bound.get(call)),
  );
  // Calls with effects run one by one, and each result is on the disk before the next starts: only
  // the first one without a result can have been running.
  const [first] = known;
  const effects = open.filter((call) => gone.includes(call) || known.includes(call));
  const entries = effects.map((call) =>
    call === first || gone.includes(call)
      ? toolEntry(turn, call, { status: 'unknown', text: OUTCOME_UNKNOWN })
      : toolEntry(turn, call, { status: 'failed', text: NOT_RUN, failure: 'cancelled' }),
  );
  if (entries.length > 0) {
    turn.log.warn('tool calls were interrupted', { calls: entries.map(({ name }) => name) });
  }
  await thread.record(entries, { durable: true });
  return open.filter((call) => !effects.includes(call));
}

const isGone = (bound: BoundCall | undefined) =>
  bound?.kind === 'refused' && bound.outcome.failure === 'unknown_tool';

function hasEffects(turn: TurnContext, call: ToolCall, bound: BoundCall | undefined): boolean {
  if (bound === undefined || bound.kind === 'refused' || isRepeatable(bound.access)) return false;
  // It did not run: asking the owner again changes nothing.
  return permissionFor(turn, call, bound) === 'free';
}

function toolEntry(
  { input, clock, thread }: TurnContext,
  call: ToolCall,
  result: Pick<ToolEntry, 'status' | 'text' | 'failure' | 'isBlocked'>,
): ToolEntry {
  const resultId = resultIdOf(input.turnId, thread.ordinalOf(call));
  return {
    role: 'tool',
    turnId: input.turnId,
    callId: call.id,
    name: call.name,
    ...(resultId === undefined ? {} : { resultId }),
    ...result,
    at: clock.now(),
  };
}

// Runs one approved call exactly as it was shown to the owner, or not at all.

type RunApprovedDeps = {
  readonly clock: Clock;
  toolbox(): Toolbox;
  settings(): AgentSettings;
};

const CHANGED =
  'Permission denied: this call means something else since it was approved. Nothing was done.';

export async function runApproved(
  { clock, toolbox, settings }: RunApprovedDeps,
  call: ApprovedCall,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const bound = toolbox().bind(call.tool, call.arguments);
  if (bound.kind === 'refused') return bound.outcome;
  if (bound.arguments !== call.arguments) {
    return { status: 'failed', text: CHANGED, failure: 'permission' };
  }
  const { session, turnId, chat, person, rights, isTainted, seal } = call;
  let texts = 0;
  return bound.run({
    ...{ session, turnId, chat, person, rights, isTainted, seal, signal, clock, askedAt: call.at },
    requestedAt: call.requestedAt ?? call.at,
    workspace: settings().workspace,
    say(markdown, attachments) {
      const ordinal = texts;
      texts += 1;
      return call.say(markdown, ordinal, attachments);
    },
  });
}
