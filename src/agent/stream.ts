// Streaming: calls the model once and shows its text as it arrives. The provider does retries and
// fallbacks; a thread that it rejects is sent again in a smaller form.

import { loopWatch } from '../features/steadiness/index.ts';
import { ProviderError, type ProviderFailure } from '../kernel/message/errors.ts';
import type { AgentEvent } from '../kernel/message/message.ts';
import type { ToolCall, ToolEntry } from '../kernel/message/transcript.ts';
import { inTime } from '../lib/async.ts';
import {
  HIDDEN_TEXT_START,
  type HiddenTextState,
  reveal,
  revealAll,
} from '../lib/html/hidden-text.ts';
import { withFenceClosed } from '../lib/text/cut.ts';
import { t } from '../lib/texts.ts';
import type { ModelEvent, ModelHandle } from '../providers/provider.ts';
import type { Toolbox } from '../tools/tool.ts';
import { notedCall, planCall, withNote } from './model-call.ts';
import type { Recovery, SignalOf, StateOf } from './rules/turn-state.ts';
import { LoopWatch } from './run-call.ts';
import { callFailed, meterOf, untilAborted } from './side-model.ts';
import {
  type CallNotes,
  type Finished,
  isBehindScenes,
  notesOn,
  takeAnswer,
} from './take-answer.ts';
import type { Thread } from './thread.ts';
import type { ModelCall, TurnContext } from './turn-context.ts';

type StreamSignal = SignalOf<'streaming'>;

/** After this time of "typing" a person needs an explanation. */
const SILENCE_MS = 15_000;

const RECOVERIES: Partial<Record<ProviderFailure['kind'], Recovery>> = {
  context_overflow: 'overflow',
  rejected: 'rejected',
};

/** @throws ProviderError when the model could not answer */
export async function* streamAnswer(
  turn: TurnContext,
  state: StateOf<'streaming'>,
): AsyncGenerator<AgentEvent, StreamSignal, void> {
  const call = planCall(turn, state);
  turn.lastCall.call = notedCall(turn, call);
  const shown = new ShownText(turn.thread, state.model, isBehindScenes(turn, state));
  const notes = notesOn(turn, state, call);
  yield* shown.think();
  try {
    const finished = yield* show(turn, call, shown, notes);
    const hasShown = turn.thread.partial !== undefined;
    const { signal, event } = await takeAnswer(turn, state, call, finished, shown.text, notes());
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

/** A model that loops is called once more. */
async function* show(
  turn: TurnContext,
  call: ModelCall,
  shown: ShownText,
  notes: () => CallNotes,
): AsyncGenerator<AgentEvent, Finished, void> {
  const first = yield* showOnce(turn, call, shown, notes);
  if (!(first instanceof LoopWatch)) return first;
  turn.log.warn('answer stopped: it repeated itself', { model: call.handle.name });
  yield* shown.restart();
  yield { type: 'notice', text: ASKED_AGAIN };
  const second = yield* showOnce(turn, askedAgain(call), shown, notes);
  if (!(second instanceof LoopWatch)) return second;
  turn.log.warn('answer stopped: it repeated itself again', { model: call.handle.name });
  const cut = cutAnswer(call, second);
  yield* shown.complete(cut.text);
  return cut;
}

async function* showOnce(
  turn: TurnContext,
  call: ModelCall,
  shown: ShownText,
  notes: () => CallNotes,
): AsyncGenerator<AgentEvent, Finished | LoopWatch, void> {
  const { handle, request } = call;
  const watch = loopWatch(turn, handle);
  const events = handle.stream(request, turn.signal, meterOf(turn, call, watch));
  for await (const event of sayingWaits(untilAborted(events, turn.signal), turn)) {
    if (event.type === 'silent') {
      yield { type: 'notice', text: t`${handle.name} has not begun to answer yet.` };
      continue;
    }
    turn.time.goOn();
    // Computed while the rest of the answer arrives.
    notes();
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
  throw callFailed(handle, { kind: 'malformed' }, 'stream ended without a final event');
}

/** Another model than the chosen one answered, perhaps a cloud service: the person has to know. */
function keepWhereItWent({ models, notices }: TurnContext, asked: ModelHandle, model: string) {
  if (model === asked.name) return;
  const isService = asked.local && !models.resolve(model).local;
  notices.keep(
    isService
      ? t`${asked.name} could not answer; ${model}, a service, was asked instead.`
      : t`${asked.name} could not answer; ${model} answered instead.`,
  );
}

/** Sends one notice where a model takes long before the first output. */
async function* sayingWaits(
  events: AsyncGenerator<ModelEvent, void, void>,
  { clock }: TurnContext,
): AsyncGenerator<ModelEvent | { readonly type: 'silent' }, void, void> {
  const first = events.next();
  // Its failure is not reported where the stream is no longer read.
  first.catch(() => undefined);
  try {
    if ((await inTime(clock, SILENCE_MS, first)) === 'late') yield { type: 'silent' };
    const begun = await first;
    if (begun.done === true) return;
    yield begun.value;
    yield* events;
  } finally {
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
  return seconds === 0 ? `${reason}.` : t`${reason}, trying again in ${seconds} s.`;
}

// The text of one model call as shown to the person: without hidden parts, withdrawn when the call
// restarts.

export class ShownText {
  readonly #thread: Thread;
  readonly #model: string;
  /** The text is hidden from the person, who sees only that the model is working. */
  readonly #isHidden: boolean;
  #hidden = '';
  #state: HiddenTextState = HIDDEN_TEXT_START;
  #isThinking = false;

  constructor(thread: Thread, model: string, isHidden: boolean) {
    this.#thread = thread;
    this.#model = model;
    this.#isHidden = isHidden;
  }

  get text(): string {
    return this.#isHidden ? this.#hidden : (this.#thread.partial?.text ?? '');
  }

  *add(delta: string): Iterable<AgentEvent> {
    const { state, text, isRetracted } = reveal(this.#state, delta);
    this.#state = state;
    if (isRetracted) yield* this.#withdraw();
    if (text !== '') yield* this.#append(text);
    else if (state.mode === 'hidden') yield* this.think();
  }

  /** Sent once until text follows: the live preview needs no more. */
  *think(): Iterable<AgentEvent> {
    if (this.#isThinking) return;
    this.#isThinking = true;
    yield { type: 'thinking' };
  }

  *restart(): Iterable<AgentEvent> {
    this.#state = HIDDEN_TEXT_START;
    yield* this.#withdraw();
  }

  /** Aligns the shown text with the complete text that the provider gave at the end. */
  *complete(whole: string): Iterable<AgentEvent> {
    const text = revealAll(whole);
    if (!text.startsWith(this.text)) yield* this.#withdraw();
    const rest = text.slice(this.text.length);
    if (rest !== '') yield* this.#append(rest);
  }

  *#append(text: string): Iterable<AgentEvent> {
    if (this.#isHidden) {
      this.#hidden += text;
      return yield* this.think();
    }
    this.#isThinking = false;
    this.#thread.partial = { text: this.text + text, model: this.#model };
    yield { type: 'text_delta', text };
  }

  *#withdraw(): Iterable<AgentEvent> {
    if (this.text === '') return;
    this.#hidden = '';
    if (this.#isHidden) return;
    this.#thread.partial = undefined;
    yield { type: 'text_discarded' };
  }
}

// Counts the texts that tools sent to the chat, including questions: after one, an empty answer is
// no failure.

export function countSent(
  calls: readonly ToolCall[],
  results: readonly ToolEntry[],
  toolbox: Toolbox,
): number {
  const done = new Set(
    results.filter(({ status }) => status === 'ok').map((entry) => entry.callId),
  );
  const asked = results.filter(({ failure }) => failure === 'waiting').map((entry) => entry.callId);
  return calls.filter((call) => {
    if (asked.includes(call.id)) return true;
    const bound = toolbox.bind(call.name, call.arguments);
    if (!done.has(call.id) || bound.kind !== 'ready') return false;
    return bound.accessIn({ isTainted: false }) === 'say';
  }).length;
}

// The text for the person when the model could not answer.

const FALLBACK = t`The model could not answer. Please try again in a few minutes.`;

export const failureText = (error: ProviderError) => error.userText ?? FALLBACK;

// The notice while a call waits for a slot of a local model server.

type Waiting = Extract<ModelEvent, { readonly type: 'waiting' }>;

export const waitingNotice = ({ server, ahead }: Waiting) =>
  t`${server} answers one request at a time: ${ahead} before you.`;

// A looping answer is aborted and requested once more; if it loops again, it is cut after the first
// passage, with a note.

const MORE_VARIED = 0.3;
const MAX_TEMPERATURE = 1.2;

const AGAIN =
  '[Your answer to this was cut off because it repeated itself. Answer again, say each thing once, then stop.]';
const ASKED_AGAIN = t`The model kept repeating itself; I stopped it and am asking again.`;
const CUT_OFF = '[The model repeated itself from here on and was stopped.]';

/** The same call with a higher temperature, so that it probably does not loop again. */
export function askedAgain(call: ModelCall): ModelCall {
  const { messages, temperature = MORE_VARIED } = call.request;
  const warmer = Math.min(MAX_TEMPERATURE, temperature + MORE_VARIED);
  const request = { ...call.request, messages: withNote(messages, AGAIN), temperature: warmer };
  return { ...call, request };
}

/** The part that is kept; nothing where there was only thinking. */
export function cutAnswer(
  { handle }: Pick<ModelCall, 'handle'>,
  { broken, text: all }: LoopWatch,
): Finished {
  const said = broken?.loop === undefined ? '' : all.slice(0, broken.loop.saidAt);
  const text = said === '' ? '' : `${withFenceClosed(said)}\n\n${CUT_OFF}`;
  return { type: 'finished', model: handle.name, text, thinking: [], toolCalls: [], stop: 'end' };
}
