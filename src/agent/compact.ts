// Compacting: makes the thread smaller, by as much as the limit or the provider asks for. First the
// earlier conversation is summed up, once and with a deadline; where the last exchange still does not
// fit, tools and prompt give way to it, and then what is older is left out of the model's view. The
// transcript keeps everything.

import { ProviderError } from '../kernel/message/errors.ts';
import type { AgentEvent } from '../kernel/message/event.ts';
import type { TranscriptEntry } from '../kernel/message/transcript.ts';
import { newBoundary } from '../lib/boundary.ts';
import { requestOf } from './compact-session.ts';
import type { CompactionRequest } from './compaction.ts';
import type { CompactorDeps } from './compactor-deps.ts';
import { expectedTokens, type ModelCall, notedCall, planCall } from './model-call.ts';
import { keptTokens, stillStands } from './rules/compaction.ts';
import { compactionText } from './rules/compaction-prompt.ts';
import { entryWithNode, losslessLimits, type NodePlan, planNode } from './rules/lossless.ts';
import {
  ASKED_STYLES,
  cutNode,
  nodePrompt,
  nodeTokens,
  unreadNode,
  writtenNode,
} from './rules/lossless-text.ts';
import type { SummaryNode } from './rules/summary-nodes.ts';
import { callBudget, MAX_SQUEEZE } from './rules/tokens.ts';
import { takenUp } from './rules/turn-closing.ts';
import type { SignalOf, StateOf } from './rules/turn-state.ts';
import type { TurnContext } from './turn-context.ts';

/** A provider that counts more than we do gets this share of what we sent. */
const OVERFLOW_SHARE = 0.5;
/** Of it, what a summary leaves word by word: the window we believe in is not the real one. */
const OVERFLOW_KEPT_SHARE = 0.25;
/** Where turns are left out, what stays takes this share of the room, so that not every call trims. */
const TRIM_TARGET_SHARE = 0.8;
/** Longest wait for a summary while a person waits for the answer. */
const SUMMARY_DEADLINE_MS = 45_000;

export const LARGER_WINDOW =
  'For more room choose another model with /model, or raise the window in the settings of the model server and in agents.defaults.maxContextTokens.';
const FORGOT_HISTORY =
  'The provider rejected the conversation; I am trying with your latest message alone.';
const SUMMING_UP = 'Our conversation has grown long: I am summing up its earlier part.';

class SummaryLate extends Error {
  override readonly name = 'SummaryLate';
}

export async function* compactThread(
  turn: TurnContext,
  state: StateOf<'compacting'>,
): AsyncGenerator<AgentEvent, SignalOf<'compacting'>, void> {
  const call = planCall(turn, state);
  turn.log.info('thread made smaller', { pressure: state.pressure, tokens: call.threadTokens });
  if (state.pressure === 'rejected') {
    turn.thread.forgetHistory();
    yield { type: 'notice', text: FORGOT_HISTORY };
    return { type: 'compacted' };
  }
  if (maySumUp(turn)) {
    turn.lastCall.hasWaited = true;
    yield { type: 'notice', text: SUMMING_UP };
    await sumUp(turn, requestFor(turn, call, state.pressure));
  }
  if (state.pressure === 'overflow') {
    const room = Math.floor(call.threadTokens * OVERFLOW_SHARE);
    if (planCall(turn, state).threadTokens > room) turn.thread.shrink(room);
  } else {
    const fitting = withLastExchange(turn, state);
    const room = roomForThread(turn, fitting);
    if (fitting.threadTokens > room) {
      turn.thread.shrink(Math.max(0, room), Math.floor(room * TRIM_TARGET_SHARE));
      refuseIfTooSmall(turn, planCall(turn, state));
    }
  }
  return { type: 'compacted' };
}

/** The call with as many tools and as much of the prompt as leave room for what was said last. */
function withLastExchange(turn: TurnContext, state: StateOf<'compacting'>): ModelCall {
  const { lastCall, thread, log } = turn;
  let call = planCall(turn, state);
  while (roomForThread(turn, call) < thread.floorTokens && lastCall.squeeze < MAX_SQUEEZE) {
    lastCall.squeeze += 1;
    call = planCall(turn, state);
  }
  if (lastCall.squeeze > 0) {
    const { contextTokens, handle, request } = call;
    const tools = request.tools.length;
    log.warn('tools and prompt shortened', { model: handle.name, contextTokens, tools });
  }
  return call;
}

/** @throws ProviderError */
function refuseIfTooSmall(turn: TurnContext, call: ModelCall): void {
  const { contextTokens, budget, handle } = call;
  if (expectedTokens(turn, call) <= contextTokens - budget.outputTokens) return;
  const size = contextTokens.toLocaleString('en-US');
  throw new ProviderError('the window does not hold the prompt and the last exchange', {
    failure: { kind: 'context_overflow', contextTokens },
    provider: handle.name.split('/')[0] ?? handle.name,
    model: handle.name,
    userText: `The context window of ${handle.name} (${size} tokens) is too small for my instructions and our last exchange. ${LARGER_WINDOW} /new starts without what was said before.`,
  });
}

export function maySumUp({ thread, settings, compactor, input }: TurnContext): boolean {
  return settings.compaction.enabled && thread.hasEarlier && !compactor.isResting(input.session);
}

function requestFor(
  turn: TurnContext,
  call: ModelCall,
  pressure: StateOf<'compacting'>['pressure'],
): CompactionRequest {
  const request = requestOf(turn, notedCall(turn, call));
  if (pressure !== 'overflow') return request;
  const usual = keptTokens(request.policy, request.size);
  const keepTokens = Math.min(usual, Math.floor(call.threadTokens * OVERFLOW_KEPT_SHARE));
  return { ...request, keepTokens };
}

/** What comes of it, the caller sees by the thread. @throws the reason of the turn's signal */
async function sumUp(turn: TurnContext, request: CompactionRequest): Promise<void> {
  const { clock, compactor, input, sessions, signal, thread } = turn;
  const late = new AbortController();
  const deadline = clock.timer(SUMMARY_DEADLINE_MS, () => late.abort(new SummaryLate()));
  try {
    const either = AbortSignal.any([signal, late.signal]);
    const report = await compactor.now(request, either);
    if (report.kind === 'compacted') thread.reopen(takenUp(await sessions.load(input.session)));
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof SummaryLate)) throw error;
    compactor.rest(input.session);
  } finally {
    deadline[Symbol.dispose]();
  }
}

function roomForThread(turn: TurnContext, { handle, budget, fixedTokens }: ModelCall): number {
  return Math.floor(budget.inputTokens / turn.correction.factor(handle.name) - fixedTokens);
}

// One step of lossless compaction: the next node, written by a model level by level, or cut from what it
// stands for where no level does. A step is one entry, so that a kill costs at most its calls.

/** Of turns that a new file left out, the newest so many become a node of their own. */
const MAX_FOUND_TURNS = 20;
/** Of a node that is made anew; what is too long to read is cut. */
const MAX_TURNS_AGAIN = 200;
/** Estimates err, and what is cut to the limit is marked. */
const READ_SHARE = 0.8;

type Reading = { readonly readTokens: number; readonly signal: AbortSignal };

/** How many messages are no longer shown as they were said; undefined: there was nothing to do. */
export async function losslessStep(
  request: CompactionRequest,
  deps: CompactorDeps,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { session, model, policy, size, keepTokens } = request;
  const { sessions, clock, models, outdated } = deps;
  const registry = models();
  const { contextTokens } = registry.resolve(registry.fast(model));
  const { inputTokens } = callBudget(contextTokens, policy.summaryTokens);
  const readTokens = Math.floor(inputTokens * READ_SHARE);
  const limits = losslessLimits(policy, size, readTokens, keepTokens);
  const planned = planNode(await sessions.load(session), limits);
  if (planned === undefined) return undefined;
  const plan = await withFound(planned, request, deps);
  const text = await textFor(plan, request, deps, { readTokens, signal });
  const entry = entryWithNode(plan, text, clock.now());
  const isWritten = await sessions.appendIf(session, [entry], (now) => stillStands(plan, now));
  if (!isWritten) return undefined;
  outdated(session);
  return plan.covered.filter(isMessage).length;
}

/** With the messages as the session's files hold them, and a node for those that are too many. */
async function withFound(
  plan: NodePlan,
  { session }: CompactionRequest,
  { sessions }: CompactorDeps,
): Promise<NodePlan> {
  if (plan.finds === undefined) return plan;
  const range = { from: plan.node.from, before: plan.node.before };
  const isLeftOut = plan.finds === 'left_out';
  const { turns } = await sessions.earlier(session, {
    ...(isLeftOut ? { before: range.before } : range),
    maxTurns: isLeftOut ? MAX_FOUND_TURNS : MAX_TURNS_AGAIN,
  });
  const found = turns.filter(({ turn }) => turn >= range.from);
  const made = found.flatMap(({ entries }) => entries);
  const foreign = made.some((entry) => 'isForeign' in entry) ? { isForeign: true as const } : {};
  const from = found[0]?.turn ?? range.from;
  const isSplit = isLeftOut && turns.length >= MAX_FOUND_TURNS && from > range.from;
  if (!isSplit) return { ...plan, made, node: { ...plan.node, ...foreign } };
  const older = { from: range.from, before: from };
  const unread: SummaryNode = { ...older, level: 0, style: 'cut', text: unreadNode(older) };
  const { messages: _, ...node } = plan.node;
  return {
    ...plan,
    made,
    node: { ...node, from, messages: made.filter(isMessage).length, ...foreign },
    others: [...plan.others, unread],
  };
}

async function textFor(
  { made, node }: NodePlan,
  { payer, model, policy }: CompactionRequest,
  { side }: CompactorDeps,
  { readTokens, signal }: Reading,
): Promise<Pick<SummaryNode, 'text' | 'style'>> {
  if (made.length === 0) return { text: unreadNode(node), style: 'cut' };
  for (const style of ASKED_STYLES) {
    const maxTokens = nodeTokens(made, style, policy.summaryTokens);
    const written = await side.complete(
      {
        role: 'compaction',
        payer,
        besides: model,
        system: nodePrompt(style, maxTokens),
        text: compactionText(made, readTokens, newBoundary()),
        maxTokens: maxTokens * 2,
      },
      signal,
    );
    const text = writtenNode(written, made, maxTokens);
    if (text !== undefined) return { text, style };
  }
  return { text: cutNode(made, nodeTokens(made, 'cut', policy.summaryTokens)), style: 'cut' };
}

const isMessage = ({ role }: TranscriptEntry) =>
  role === 'user' || role === 'assistant' || role === 'tool';
