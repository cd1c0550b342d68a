// The turn as a pure state machine. `advance` takes a state and the signal its work ended with, and
// tells which work is due next; a signal that does not belong to the phase does not type-check.
//
//   preparing → waiting → routing → [compacting] → streaming → executing → waiting ...
//                                                       ↓
//                                                  finalizing → done

import type {
  Ask,
  Ending,
  InterruptibleState,
  Interruption,
  LivePhase,
  Progress,
  SignalOf,
  StateOf,
  TurnLimit,
  TurnLimits,
  TurnState,
} from './turn-state.ts';

export const TURN_START: StateOf<'preparing'> = { phase: 'preparing' };

/** From this share of the rounds on the model is told how many remain. */
const ROUNDS_NOTICE_SHARE = 0.8;
/** From this share of the time on no tools are run, to leave time for the answer. */
const TIME_TO_ANSWER_SHARE = 0.9;
/** Rounds without any run call after which the model has to answer without tools. */
const MAX_BLOCKED_ROUNDS = 2;
const EMPTY_ANSWER_RETRIES = 1;
const EMPTY_ANSWER_DELAY_MS = 1000;

const NO_PROGRESS: Progress = {
  rounds: 0,
  tokens: 0,
  emptyAnswers: 0,
  messagesSent: 0,
  blockedRounds: 0,
  recoveries: [],
};

type Transitions = {
  readonly [P in LivePhase]: (
    state: StateOf<P>,
    signal: SignalOf<P>,
    limits: TurnLimits,
  ) => TurnState;
};

/** Interrupts a phase: only recording the end is left. */
export function interrupt(state: InterruptibleState, cause: Interruption): StateOf<'finalizing'> {
  if (cause.kind === 'stopped') return finalize(state.progress, cause);
  const ending: Ending = cause.kind === 'time' ? { kind: 'limit', limit: 'time' } : cause;
  return giveUp(state.progress, ending);
}

const afterPreparing: Transitions['preparing'] = (_state, signal) => {
  if (signal.type === 'already_over') return { phase: 'done', outcome: signal.outcome };
  const { rounds, tokens, messagesSent, blockedRounds } = signal;
  const progress = { ...NO_PROGRESS, rounds, tokens, messagesSent, blockedRounds };
  switch (signal.resumption.kind) {
    case 'ask':
      return { phase: 'waiting', progress, delayMs: 0 };
    case 'drafted':
      return { phase: 'waiting', progress: { ...progress, isDrafted: true }, delayMs: 0 };
    case 'unsupported':
      return doubted(progress, signal.resumption.sentences);
    case 'calls':
      return { phase: 'executing', progress, calls: signal.resumption.calls };
    case 'answered':
      return finalize(progress, { kind: 'answered', cut: false });
  }
};

const afterWaiting: Transitions['waiting'] = (
  { progress: before },
  { elapsedMs, isSteered },
  limits,
) => {
  const progress = isSteered === true ? begunAnew(before) : before;
  if (progress.tokens >= limits.maxTokens) {
    return giveUp(progress, { kind: 'limit', limit: 'tokens' });
  }
  if (elapsedMs >= limits.maxMs) return giveUp(progress, { kind: 'limit', limit: 'time' });
  return { phase: 'routing', progress, ask: nextAsk(progress, elapsedMs, limits) };
};

/** A new message of the person may need more work, and other calls. */
function begunAnew({ isDrafted: _, ...progress }: Progress): Progress {
  return { ...progress, blockedRounds: 0 };
}

function nextAsk(progress: Progress, elapsedMs: number, limits: TurnLimits): Ask {
  const { rounds, blockedRounds, isDrafted, unsupported } = progress;
  const { maxRounds, maxMs } = limits;
  if (unsupported !== undefined) {
    return { kind: 'correct', sentences: unsupported, mayAct: rounds < maxRounds };
  }
  if (isDrafted === true) return { kind: 'answer' };
  if (rounds >= maxRounds) return concluding('rounds');
  if (blockedRounds >= MAX_BLOCKED_ROUNDS) return concluding('loop');
  const isLate = rounds > 0 && elapsedMs >= TIME_TO_ANSWER_SHARE * maxMs;
  if (isLate) return concluding('time');
  const fewLeft = rounds >= Math.ceil(ROUNDS_NOTICE_SHARE * maxRounds);
  return { kind: 'work', ...(fewLeft ? { remainingRounds: maxRounds - rounds } : {}) };
}

/** The first call is always made, because otherwise there would be no answer. */
const afterRouting: Transitions['routing'] = ({ progress: before, ask }, signal, { maxTokens }) => {
  if (signal.type !== 'routed') {
    const progress = afterCall(before, signal.tokens);
    return signal.type === 'decided'
      ? { phase: 'executing', progress, calls: signal.calls }
      : finalize(progress, endingOf(ask));
  }
  const { model, size, expectedTokens, cue, tokens = 0 } = signal;
  const progress = { ...before, tokens: before.tokens + tokens };
  const left = progress.rounds === 0 ? Number.POSITIVE_INFINITY : maxTokens - progress.tokens;
  if (expectedTokens > left) return giveUp(progress, { kind: 'limit', limit: 'tokens' });
  // After another round of tools the tokens would not suffice for an answer.
  const isLast = ask.kind === 'work' && 2 * expectedTokens > left;
  const next = { progress, model, cue, ask: isLast ? concluding('tokens') : ask };
  return size === 'fits'
    ? { ...next, phase: 'streaming' }
    : { ...next, phase: 'compacting', pressure: 'estimate' };
};

const concluding = (why: TurnLimit): Ask => ({ kind: 'conclude', why });
const endingOf = (ask: Ask): Ending =>
  ask.kind === 'conclude' ? { kind: 'limit', limit: ask.why } : { kind: 'answered', cut: false };

const afterStreaming: Transitions['streaming'] = (state, signal) => {
  const { ask, model, cue } = state;
  if (signal.type === 'not_taken') {
    const { recoveries } = state.progress;
    if (recoveries.includes(signal.why)) {
      return giveUp(state.progress, { kind: 'failed', text: signal.text });
    }
    const progress = { ...state.progress, recoveries: [...recoveries, signal.why] };
    return { phase: 'compacting', progress, ask, model, cue, pressure: signal.why };
  }
  const progress = afterCall(state.progress, signal.tokens);
  if (signal.type === 'answered') return afterAnswer(progress, ask, signal);
  if (ask.kind === 'conclude') return finalize(progress, { kind: 'limit', limit: ask.why });
  return { phase: 'executing', progress, calls: signal.calls };
};

function afterCall({ unsupported: _, ...before }: Progress, tokens: number): Progress {
  return { ...before, rounds: before.rounds + 1, tokens: before.tokens + tokens };
}

function afterAnswer(
  progress: Progress,
  ask: Ask,
  { written, stop, isDraft, unsupported }: Extract<SignalOf<'streaming'>, { type: 'answered' }>,
): TurnState {
  if (unsupported !== undefined) return doubted(progress, unsupported);
  if (isDraft === true && written !== 'never' && stop !== 'refused') {
    return { phase: 'waiting', progress: { ...progress, isDrafted: true }, delayMs: 0 };
  }
  if (written === 'now') return finalize(progress, { kind: 'answered', cut: stop === 'length' });
  if (stop === 'refused') return finalize(progress, { kind: 'refused' });
  if (ask.kind === 'conclude') return finalize(progress, { kind: 'limit', limit: ask.why });
  if (written === 'earlier' || progress.messagesSent > 0) {
    return finalize(progress, { kind: 'answered', cut: false });
  }
  if (progress.emptyAnswers >= EMPTY_ANSWER_RETRIES) return finalize(progress, { kind: 'empty' });
  const emptyAnswers = progress.emptyAnswers + 1;
  return {
    phase: 'waiting',
    progress: { ...progress, emptyAnswers },
    delayMs: EMPTY_ANSWER_DELAY_MS,
  };
}

function doubted(progress: Progress, unsupported: readonly string[]): StateOf<'waiting'> {
  return { phase: 'waiting', progress: { ...progress, unsupported }, delayMs: 0 };
}

/** An answer that could not be corrected is better than none. */
function giveUp(progress: Progress, ending: Ending): StateOf<'finalizing'> {
  const isAnswered = progress.unsupported !== undefined;
  return finalize(progress, isAnswered ? { kind: 'answered', cut: false } : ending);
}

function finalize(progress: Progress, ending: Ending): StateOf<'finalizing'> {
  return { phase: 'finalizing', progress, ending };
}

const TRANSITIONS: Transitions = {
  preparing: afterPreparing,
  waiting: afterWaiting,
  routing: afterRouting,
  compacting: ({ pressure: _, ...state }) => ({ ...state, phase: 'streaming' }),
  streaming: afterStreaming,
  executing: ({ progress }, { messagesSent, isBlocked }) => {
    const sent = progress.messagesSent + messagesSent;
    const blockedRounds = isBlocked ? progress.blockedRounds + 1 : 0;
    const next = { ...progress, messagesSent: sent, blockedRounds };
    return { phase: 'waiting', progress: next, delayMs: 0 };
  },
  finalizing: (_state, { outcome }) => ({ phase: 'done', outcome }),
};

type Step = { [P in LivePhase]: Parameters<Transitions[P]> }[LivePhase];

export const advance: (...step: Step) => TurnState = <P extends LivePhase>(
  ...[state, signal, limits]: [StateOf<P>, SignalOf<P>, TurnLimits]
) => TRANSITIONS[state.phase](state, signal, limits);
