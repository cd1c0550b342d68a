// When a conversation is made smaller. In a turn: old results of tools are cleared first; then, once and
// with a deadline, the earlier conversation is summarized; where the last exchange still does not fit,
// tools and prompt give way to it, and then what is older is left out of the model's view. Behind a turn
// above the watermark, and on command, it is summarized as well. The transcript keeps everything.

import { ProviderError } from '../kernel/message/errors.ts';
import type { SessionKey } from '../kernel/message/ids.ts';
import type { AgentEvent, Payer } from '../kernel/message/message.ts';
import { type Clock, withDeadline } from '../lib/time/clock.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import type { CompactionReport, CompactionRequest, Compactor } from './agent.ts';
import type { CompactionEngine } from './compaction-settings.ts';
import { expectedTokens, type ModelCall, notedCall, planCall } from './model-call.ts';
import { conversationRoom, keptTokens, watermarkTokens } from './rules/compaction.ts';
import { callBudget, MAX_SQUEEZE } from './rules/tokens.ts';
import { takenUp } from './rules/turn-closing.ts';
import type { SignalOf, StateOf } from './rules/turn-state.ts';
import { type AgentSettings, withEngine } from './settings.ts';
import type { CalledModel, NotedCall, TurnContext } from './turn-context.ts';

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
const SUMMING_UP = 'This conversation is long; I am summarising its earlier part.';

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

/** The caller sees the result in the thread. @throws the reason of the turn's signal */
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

// When a session is summarized without a turn that waits for it.

/** Longest wait of a person who asked for it; it may take several calls. */
const COMMAND_DEADLINE_MS = 180_000;
/** Prompt and tools, of what a call may take, where none was made. */
const USUAL_FIXED_SHARE = 0.4;

/** Behind a turn whose call came above the watermark. */
export function compactAfter(turn: TurnContext): void {
  const { call } = turn.lastCall;
  const { compaction } = turn.settings;
  if (call === undefined || !compaction.enabled) return;
  const mark = watermarkTokens(compaction, sizeOf(turn.settings, call.handle));
  if (call.tokens <= mark) return;
  const next = nextCall(turn, call.handle);
  if (next.tokens > mark) turn.compactor.inBackground(requestOf(turn, next));
}

type CompactCommand = {
  readonly session: SessionKey;
  readonly payer: Payer;
  readonly model: string | undefined;
  readonly engine: CompactionEngine | undefined;
};

export async function compactOnCommand(
  { session, payer, model, engine }: CompactCommand,
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

/** What the next turn would begin with: the results that this one read are no longer needed. */
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

/** What a call should take after clearing, as a part of the threshold. */
const TARGET_SHARE = 0.6;
/** Less of the threshold than this is not worth a broken prompt cache. */
const WORTH_SHARE = 0.1;
/** Of the room for the conversation, what the newest results keep. */
const KEPT_SHARE = 0.3;
const PERCENT = 100;

/** Clears as many results as give room for a while; whether any: the call has to be planned anew. */
export function clearOldResults(turn: TurnContext, call: ModelCall): boolean {
  const { aboveTokens, abovePercent, keepNewest } = turn.settings.clearing;
  const share = (call.contextTokens * abovePercent) / PERCENT;
  // Before a summary is asked for: a result can be read again, and is most of what has no room.
  const mark = watermarkTokens(turn.settings.compaction, call);
  const threshold = Math.min(aboveTokens, share, mark);
  const expected = expectedTokens(turn, call);
  if (expected <= threshold) return false;
  // The thread counts in estimates; what they are off by is known per model.
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
