// Does the work that a phase stands for and moves the state on. Each phase's work ends with a signal
// of that phase; anything else does not type-check.

import type { Cue } from '../features/modes/mode.ts';
import type { AgentEvent } from '../kernel/message/event.ts';
import { clearOldResults, compactThread, LARGER_WINDOW, maySumUp } from './compact.ts';
import { executeCalls } from './execute.ts';
import { expectedTokens, type ModelCall, mayAct, planCall } from './model-call.ts';
import { prepareTurn, recordSteering } from './prepare.ts';
import { hardTokens } from './rules/compaction.ts';
import { advance } from './rules/turn.ts';
import type { Ask, LiveState, SignalOf, StateOf, TurnState } from './rules/turn-state.ts';
import { streamAnswer } from './stream.ts';
import { finalizeTurn } from './take-answer.ts';
import type { TurnContext } from './turn-context.ts';

export async function* perform(
  turn: TurnContext,
  state: LiveState,
): AsyncGenerator<AgentEvent, TurnState, void> {
  const { limits } = turn;
  switch (state.phase) {
    case 'preparing':
      return advance(state, await prepareTurn(turn), limits);
    case 'waiting':
      return advance(state, await wait(turn, state), limits);
    case 'routing':
      return advance(state, yield* routeTurn(turn, state), limits);
    case 'compacting':
      return advance(state, yield* compactThread(turn, state), limits);
    case 'streaming':
      return advance(state, yield* streamAnswer(turn, state), limits);
    case 'executing':
      return advance(state, yield* executeCalls(turn, state), limits);
    case 'finalizing':
      return advance(state, await finalizeTurn(turn, state), limits);
  }
}

async function wait(
  turn: TurnContext,
  { delayMs }: StateOf<'waiting'>,
): Promise<SignalOf<'waiting'>> {
  if (delayMs > 0) await turn.clock.sleep(delayMs, turn.signal);
  const isSteered = await recordSteering(turn);
  const elapsedMs = turn.time.elapsedMs();
  return { type: 'resumed', elapsedMs, ...(isSteered ? { isSteered } : {}) };
}

// Routing: which model answers, and whether the thread fits it. Where several share the work of the
// turn, its mode says first who speaks.

type Main = Extract<Cue, { readonly kind: 'main' }>;

/** @throws ProviderError also where another model than the main one could not be asked */
export async function* routeTurn(
  turn: TurnContext,
  { ask }: StateOf<'routing'>,
): AsyncGenerator<AgentEvent, SignalOf<'routing'>, void> {
  const { mode } = turn;
  const closing = ask.kind === 'conclude' ? await mode?.closing?.() : undefined;
  if (closing !== undefined) return yield* recorded(turn, closing);
  if (mode?.cue === undefined || !mayAct({ ask, cue: undefined })) {
    return routed(turn, ask, undefined);
  }
  const cue = yield* mode.cue(ask, turn.signal);
  if (cue.kind !== 'main') return yield* recorded(turn, cue);
  return routed(turn, ask, cue);
}

/** Loaded with the first mode that decides or speaks. */
async function* recorded(turn: TurnContext, cue: Exclude<Cue, Main>) {
  const { recordCue } = await import('../features/modes/record-cue.ts');
  return yield* recordCue(turn, cue);
}

function routed(turn: TurnContext, ask: Ask, said: Main | undefined): SignalOf<'routing'> {
  const [{ message }] = turn.input.messages;
  const chosen = turn.input.settings.model ?? turn.models.defaultModel;
  const model = turn.spending.modelFor(message, chosen, (name) => turn.models.fast(name));
  const asked = { model, ask, cue: said?.main };
  const planned = planCall(turn, asked);
  const call = clearOldResults(turn, planned) ? planCall(turn, asked) : planned;
  if (call.leftOut.tools > 0) turn.tellOwner(smallWindowText(call));
  const { inputTokens, outputTokens } = call.budget;
  const input = expectedTokens(turn, call);
  const size = input <= limitOf(turn, call) ? 'fits' : 'too_large';
  const expected = Math.min(input, inputTokens) + outputTokens;
  const taken = said?.tokens === undefined ? {} : { tokens: said.tokens };
  return { type: 'routed', model, size, expectedTokens: expected, cue: said?.main, ...taken };
}

function smallWindowText({ handle, contextTokens }: ModelCall): string {
  const size = contextTokens.toLocaleString('en-US');
  return `The context window of ${handle.name} holds ${size} tokens. To keep the conversation in view, this model is offered fewer tools and a shorter prompt. ${LARGER_WINDOW} /context shows what fills it.`;
}

/** Below what fits, a call waits once for its conversation to be summed up. */
function limitOf(turn: TurnContext, call: ModelCall): number {
  return maySumUp(turn) && !turn.lastCall.hasWaited
    ? hardTokens(turn.settings.compaction, call)
    : call.budget.inputTokens;
}
