// Decides when and how a conversation is made smaller. During a turn: old tool results are cleared
// first; then the earlier conversation is summarised, once and with a deadline; if the last
// exchange still does not fit, tools and prompt are reduced, and then older entries are hidden from
// the model. A turn above the watermark and the command /compact start a summary as well. The
// transcript keeps everything.

import { ProviderError } from '../kernel/message/errors.ts';
import type { AgentEvent } from '../kernel/message/message.ts';
import { t } from '../lib/texts.ts';
import { type Clock, withDeadline } from '../lib/time/clock.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import type { Agent, CompactionReport, CompactionRequest, Compactor } from './agent.ts';
import { expectedTokens, notedCall, planCall } from './model-call.ts';
import { conversationRoom, keptTokens, watermarkTokens } from './rules/compaction.ts';
import { callBudget, MAX_SQUEEZE } from './rules/tokens.ts';
import { takenUp } from './rules/turn-closing.ts';
import type { SignalOf, StateOf } from './rules/turn-state.ts';
import { type AgentSettings, withEngine } from './settings.ts';
import type { CalledModel, ModelCall, NotedCall, TurnContext } from './turn-context.ts';

/**
 * After an overflow the conversation is reduced to this share of what was sent, because the
 * provider counts more tokens.
 */
const OVERFLOW_SHARE = 0.5;
/**
 * The share of it that a summary keeps verbatim: the real window is smaller than the assumed one.
 */
const OVERFLOW_KEPT_SHARE = 0.25;
/** Trimming leaves this share of the room in use, so that not every call trims. */
const TRIM_TARGET_SHARE = 0.8;
/** Longest wait for a summary while a person waits for the answer. */
const SUMMARY_DEADLINE_MS = 45_000;

export const LARGER_WINDOW = t`For more room choose another model with /model, or raise the window in the settings of the model server and in agents.defaults.maxContextTokens.`;
const FORGOT_HISTORY = t`The provider rejected the conversation; I am trying with your latest message alone.`;
const SUMMING_UP = t`This conversation is long; I am summarising its earlier part.`;

class SummaryLate extends Error {
  override readonly name = 'SummaryLate';
}

export async function* compactThread(
  turn: TurnContext,
  state: StateOf<'compacting'>,
): AsyncGenerator<AgentEvent, SignalOf<'compacting'>, void> {
  const call = planCall(turn, state);
  turn.log.info('context reduced', { pressure: state.pressure, tokens: call.threadTokens });
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

/** The call with tools and prompt reduced until the last exchange fits. */
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

/** Replaces the entries in the thread. @throws the reason of the turn's signal */
async function sumUp(turn: TurnContext, request: CompactionRequest): Promise<void> {
  const { clock, compactor, input, sessions, signal, thread } = turn;
  const late = () => new SummaryLate();
  try {
    const report = await withDeadline(clock, SUMMARY_DEADLINE_MS, late, signal, (either) =>
      compactor.now(request, either),
    );
    if (report.kind === 'compacted') thread.reopen(takenUp(await sessions.load(input.session)));
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof SummaryLate)) throw error;
    compactor.rest(input.session);
  }
}

function roomForThread(turn: TurnContext, { handle, budget, fixedTokens }: ModelCall): number {
  return Math.floor(budget.inputTokens / turn.correction.factor(handle.name) - fixedTokens);
}

// Summaries of a session without a turn that waits for them.

/** Longest wait for a summary that a person asked for; it may take several calls. */
const COMMAND_DEADLINE_MS = 180_000;
/** Assumed share of prompt and tools in a call, before the first call was made. */
const USUAL_FIXED_SHARE = 0.4;

/** Starts after a turn with a call above the watermark. */
export function compactAfter(turn: TurnContext): void {
  const { call } = turn.lastCall;
  const { compaction } = turn.settings;
  if (call === undefined || !compaction.enabled) return;
  const mark = watermarkTokens(compaction, sizeOf(turn.settings, call.handle));
  if (call.tokens <= mark) return;
  const next = nextCall(turn, call.handle);
  if (next.tokens > mark) turn.compactor.inBackground(requestOf(turn, next));
}

export async function compactOnCommand(
  [session, payer, { model, engine }]: Parameters<Agent['compact']>,
  compactor: Compactor,
  deps: { readonly clock: Clock; models(): ModelRegistry; settings(): AgentSettings },
): Promise<CompactionReport> {
  const { compaction: policy, ...rest } = withEngine(deps.settings(), engine);
  const registry = deps.models();
  const handle = registry.resolve(model ?? registry.defaultModel);
  const size = sizeOf(rest, handle);
  const fixedTokens = watermarkTokens(policy, size) * USUAL_FIXED_SHARE;
  const roomTokens = conversationRoom(policy, size, { fixedTokens, factor: 1 });
  const about = { session, payer, model: handle.name, policy, size: { ...size, roomTokens } };
  const late = new SummaryLate();
  const never = new AbortController().signal;
  const work = (signal: AbortSignal) => compactor.now({ ...about, keepTokens: 0 }, signal);
  return withDeadline(deps.clock, COMMAND_DEADLINE_MS, () => late, never, work).catch((error) => {
    if (error === late) return { kind: 'failed' };
    throw error;
  });
}

/**
 * The call that the next turn would start with; the tool results of this turn are no longer needed.
 */
function nextCall(turn: TurnContext, { name }: CalledModel): NotedCall {
  const asked = { model: name, ask: { kind: 'work' } } as const;
  const planned = planCall(turn, asked);
  return notedCall(turn, clearOldResults(turn, planned) ? planCall(turn, asked) : planned);
}

/** The author of the newest message pays. */
function requestOf(
  turn: TurnContext,
  { handle, fixedTokens }: Pick<NotedCall, 'handle' | 'fixedTokens'>,
): CompactionRequest {
  const { messages, session } = turn.input;
  const payer = (messages.at(-1) ?? messages[0]).message;
  const policy = turn.settings.compaction;
  const size = sizeOf(turn.settings, handle);
  const factor = turn.correction.factor(handle.name);
  const roomTokens = conversationRoom(policy, size, { fixedTokens, factor });
  return { session, payer, model: handle.name, policy, size: { ...size, roomTokens } };
}

function sizeOf(
  { maxContextTokens, maxTokens }: Pick<AgentSettings, 'maxContextTokens' | 'maxTokens'>,
  handle: CalledModel,
) {
  const contextTokens = Math.min(handle.contextTokens, maxContextTokens);
  return { contextTokens, budget: callBudget(contextTokens, maxTokens) };
}

/** Target of clearing, as a share of the threshold. */
const TARGET_SHARE = 0.6;
/** Clearing less than this share of the threshold is not worth invalidating the prompt cache. */
const WORTH_SHARE = 0.1;
/** The newest results keep this share of the room for the conversation. */
const KEPT_SHARE = 0.3;
const PERCENT = 100;

/**
 * Clears enough results to leave room for further calls; true: the call has to be planned again.
 */
export function clearOldResults(turn: TurnContext, call: ModelCall): boolean {
  const { aboveTokens, abovePercent, keepNewest } = turn.settings.clearing;
  const share = (call.contextTokens * abovePercent) / PERCENT;
  // Before a summary: a result can be read again, and results take most of the room.
  const mark = watermarkTokens(turn.settings.compaction, call);
  const threshold = Math.min(aboveTokens, share, mark);
  const expected = expectedTokens(turn, call);
  if (expected <= threshold) return false;
  // The thread counts estimates; this factor of the model corrects them.
  const factor = turn.correction.factor(call.handle.name);
  const cleared = turn.thread.clear({
    excessTokens: (expected - threshold * TARGET_SHARE) / factor,
    worthTokens: (threshold * WORTH_SHARE) / factor,
    keepNewest,
    keepTokens: Math.max(0, mark / factor - call.fixedTokens) * KEPT_SHARE,
  });
  if (cleared > 0) turn.log.info('old results cleared', { results: cleared, tokens: expected });
  return cleared > 0;
}
