// Streaming: asks the model once and shows its text as it comes. Retries and fallbacks are the
// provider's; a thread that it would not take is asked again smaller.

import { ProviderError, type ProviderFailure } from '../core/errors.ts';
import type { AgentEvent } from '../core/event.ts';
import type { Recovery, SignalOf, StateOf } from '../core/turn-state.ts';
import type { ModelEvent, ModelHandle } from '../providers/provider.ts';
import { meterOf } from './charge.ts';
import { failureText } from './failure-text.ts';
import { ASKED_AGAIN, askedAgain, cutAnswer } from './loop-cut.ts';
import { LoopWatch } from './loop-watch.ts';
import { type ModelCall, notedCall, planCall } from './model-call.ts';
import { ShownText } from './shown-text.ts';
import { loopWatch } from './steadiness.ts';
import { type Finished, isBehindScenes, takeAnswer } from './take-answer.ts';
import type { TurnContext } from './turn-context.ts';
import { untilAborted } from './until-aborted.ts';
import { waitingNotice } from './waiting-notice.ts';

type StreamSignal = SignalOf<'streaming'>;

/** A person watches "typing" that long before they wonder. */
const SILENCE_MS = 15_000;

const RECOVERIES: Partial<Record<ProviderFailure['kind'], Recovery>> = {
  context_overflow: 'overflow',
  rejected: 'rejected',
};

/** @throws ProviderError when the model could not answer. */
export async function* streamAnswer(
  turn: TurnContext,
  state: StateOf<'streaming'>,
): AsyncGenerator<AgentEvent, StreamSignal, void> {
  const call = planCall(turn, state);
  turn.lastCall.note(notedCall(turn, call));
  const shown = new ShownText(turn.thread, state.model, isBehindScenes(turn, state));
  yield* shown.think();
  try {
    const finished = yield* show(turn, call, shown);
    const hasShown = turn.thread.partial !== undefined;
    const { signal, event } = await takeAnswer(turn, state, call, finished, shown.text);
    const isForLater = signal.type === 'called' && turn.settings.finalAnswer === 'separate';
    const isDoubted = signal.type === 'answered' && signal.unsupported !== undefined;
    if (hasShown && (isForLater || isDoubted)) {
      yield { type: 'text_discarded' };
    }
    yield event;
    return signal;
  } catch (error) {
    const notTaken = recoveryFrom(error);
    if (notTaken === undefined || turn.signal.aborted || turn.thread.partial !== undefined) {
      throw error;
    }
    return notTaken;
  }
}

function recoveryFrom(error: unknown): Extract<StreamSignal, { type: 'not_taken' }> | undefined {
  if (!(error instanceof ProviderError)) return undefined;
  const why = RECOVERIES[error.failure.kind];
  return why === undefined ? undefined : { type: 'not_taken', why, text: failureText(error) };
}

/** A model that repeats itself without end is asked once more. */
async function* show(
  turn: TurnContext,
  call: ModelCall,
  shown: ShownText,
): AsyncGenerator<AgentEvent, Finished, void> {
  const first = yield* showOnce(turn, call, shown);
  if (!(first instanceof LoopWatch)) return first;
  turn.log.warn('answer broken off: it repeated itself', { model: call.handle.name });
  yield* shown.restart();
  yield { type: 'notice', text: ASKED_AGAIN };
  const second = yield* showOnce(turn, askedAgain(call), shown);
  if (!(second instanceof LoopWatch)) return second;
  turn.log.warn('answer cut off: it repeated itself again', { model: call.handle.name });
  const cut = cutAnswer(call, second);
  yield* shown.complete(cut.text);
  return cut;
}

async function* showOnce(
  turn: TurnContext,
  call: ModelCall,
  shown: ShownText,
): AsyncGenerator<AgentEvent, Finished | LoopWatch, void> {
  const { handle, request } = call;
  const watch = loopWatch(turn, handle);
  const events = handle.stream(request, turn.signal, meterOf(turn, call, watch));
  for await (const event of sayingWaits(untilAborted(events, turn.signal), turn)) {
    if (event.type === 'silent') {
      yield { type: 'notice', text: `${handle.name} has not begun to answer yet.` };
      continue;
    }
    turn.time.goOn();
    switch (event.type) {
      case 'text':
        yield* shown.add(event.delta);
        if (watch?.isLooping('text', event.delta) === true) return watch;
        break;
      case 'thinking':
        yield* shown.think();
        if (watch?.isLooping('thinking', event.delta) === true) return watch;
        break;
      case 'tool_call':
        if (watch !== undefined) watch.hasCalls = true;
        break;
      case 'waiting':
        yield* waits(turn, event);
        break;
      case 'retrying':
        watch?.restart();
        yield* retries(turn, shown, event);
        break;
      case 'finished':
        yield* shown.complete(event.text);
        keepWhereItWent(turn, handle, event.model);
        return event;
    }
  }
  throw new ProviderError('stream ended without a final event', {
    failure: { kind: 'malformed' },
    provider: handle.name,
    model: handle.name,
  });
}

/** What was meant for one's own machine went to a service: the person has to know. */
function keepWhereItWent({ models, notices }: TurnContext, asked: ModelHandle, model: string) {
  if (!asked.local || model === asked.name || models.resolve(model).local) return;
  notices.keep(`${asked.name} could not answer; this went to ${model}, a service.`);
}

/** Tells once where a model takes its time before the first sign of an answer. */
async function* sayingWaits(
  events: AsyncGenerator<ModelEvent, void, void>,
  { clock }: TurnContext,
): AsyncGenerator<ModelEvent | { readonly type: 'silent' }, void, void> {
  const first = events.next();
  // Where nobody reads on, nobody hears of its failure either.
  first.catch(() => undefined);
  const { promise, resolve } = Promise.withResolvers<'silent'>();
  const timer = clock.timer(SILENCE_MS, () => resolve('silent'));
  try {
    if ((await Promise.race([first, promise])) === 'silent') yield { type: 'silent' };
    const begun = await first;
    if (begun.done === true) return;
    yield begun.value;
    yield* events;
  } finally {
    timer[Symbol.dispose]();
    // Not awaited: it may be in the middle of a wait.
    events.return().catch(() => undefined);
  }
}

function* waits(
  { time }: TurnContext,
  event: Extract<ModelEvent, { type: 'waiting' }>,
): Iterable<AgentEvent> {
  if (event.ahead === 0) return;
  time.standStill();
  yield { type: 'notice', text: waitingNotice(event) };
}

function* retries(
  { log }: TurnContext,
  shown: ShownText,
  event: Extract<ModelEvent, { type: 'retrying' }>,
): Iterable<AgentEvent> {
  log.warn('model call retried', { reason: event.reason, delayMs: event.delayMs });
  yield* shown.restart();
  yield { type: 'notice', text: retryNotice(event) };
}

function retryNotice({ reason, delayMs }: Extract<ModelEvent, { type: 'retrying' }>): string {
  const seconds = Math.round(delayMs / 1000);
  return seconds === 0 ? `${reason}.` : `${reason}, trying again in ${seconds} s.`;
}
