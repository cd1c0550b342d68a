// The background model: single calls outside of turns and without tools, e.g. for a summary, a
// check or a title. They are charged like answers; their output is only shown or stored by the
// caller, never executed.

import { driftIn } from '../features/steadiness/index.ts';
import { type Kernel, port } from '../kernel/feature.ts';
import { ProviderError, type ProviderFailure } from '../kernel/message/errors.ts';
import type { TurnId } from '../kernel/message/ids.ts';
import type { Payer } from '../kernel/message/message.ts';
import type { Drift, SharedCall } from '../kernel/message/transcript.ts';
import { defined } from '../lib/json/json.ts';
import { type Clock, following, onAbort } from '../lib/time/clock.ts';
import type { CallMeter, ModelEvent, ModelHandle, ModelRegistry } from '../providers/provider.ts';
import {
  type PlannedCall,
  type SideRole,
  type SpendingGuard,
  SpendingRefusedError,
} from './agent.ts';
import { expectedTokens } from './model-call.ts';
import { MODELS } from './models.ts';
import { CHARS_PER_TOKEN, textTokens } from './rules/tokens.ts';
import type { LoopWatch } from './run-call.ts';
import { type CalledModel, type ModelCall, type TurnContext, TurnTime } from './turn-context.ts';

const TIMEOUT_MS = 120_000;
/** Role of an abandoned call in the cost of a conversation. */
const RESTARTED = 'restarted for a follower';

export type SideCall = {
  readonly role: SideRole;
  readonly payer: Payer;
  /** The model of the session, whose vendor's background model is used; undefined = the default. */
  readonly besides?: string;
  readonly system: string;
  /** Untrusted content has to be wrapped already. */
  readonly text: string;
  /** Longest answer, in tokens. */
  readonly maxTokens: number;
};

export interface SideModel {
  /**
   * The whole answer, trimmed.
   * @throws ProviderError also where the answer is empty, was cut off or took too long
   * @throws SpendingRefusedError
   */
  complete(call: SideCall, signal: AbortSignal): Promise<string>;
}

export const SIDE_MODEL = port<SideModel>('side model');

type SideModelDeps = {
  readonly spending: SpendingGuard;
  readonly clock: Clock;
  models(): ModelRegistry;
};

export function install(kernel: Kernel): void {
  const { clock } = kernel;
  const models = kernel.use(MODELS).current;
  kernel.provide(SIDE_MODEL, createSideModel({ spending: kernel.modelCalls, clock, models }));
}

export function createSideModel({ spending, clock, models }: SideModelDeps): SideModel {
  return {
    async complete({ payer, role, besides, system, text, maxTokens }, signal) {
      const registry = models();
      const handle = registry.resolve(registry.fast(besides ?? registry.defaultModel));
      const request = {
        system: [{ text: system, stable: true }],
        messages: [{ role: 'user' as const, text }],
        tools: [],
        maxTokens,
      };
      const inputTokens = () => textTokens(system) + textTokens(text);
      const meter = chargedMeter(spending, payer, { role, maxTokens, inputTokens });
      const call = { request, meter, clock, maxMs: TIMEOUT_MS, late: () => tooLate(handle) };
      const { stop, text: written } = await wholeAnswer(handle, call, signal);
      const answer = written.trim();
      if (stop === 'end' && answer !== '') return answer;
      throw callFailed(handle, { kind: 'malformed' }, `no usable answer: ${stop}`);
    },
  };
}

type Finished = Extract<ModelEvent, { readonly type: 'finished' }>;

type WholeCall = {
  readonly request: Parameters<ModelHandle['stream']>[0];
  readonly meter: CallMeter;
  readonly clock: Clock;
  /** Without the time that it waits for a slot of a local server. */
  readonly maxMs: number;
  /** The error when it took longer. */
  late(): Error;
  /** Sees each event; what it returns is the answer, and the call ends. */
  look?(event: ModelEvent): Finished | undefined;
};

/** @throws ProviderError, the error of `late`, or the reason of the signal */
export async function wholeAnswer(
  handle: ModelHandle,
  { request, meter, clock, maxMs, late, look }: WholeCall,
  signal: AbortSignal,
): Promise<Finished> {
  using ending = following(signal);
  const time = new TurnTime(clock);
  using _deadline = time.limit(maxMs, () => ending.abort(late()));
  const events = handle.stream(request, ending.signal, meter);
  for await (const event of untilAborted(events, ending.signal)) {
    if (event.type === 'waiting' && event.ahead > 0) time.standStill();
    else time.goOn();
    const answer = look?.(event) ?? (event.type === 'finished' ? event : undefined);
    if (answer !== undefined) return answer;
  }
  throw callFailed(handle, { kind: 'malformed' }, 'the answer did not end');
}

export const tooLate = (handle: ModelHandle) =>
  callFailed(handle, { kind: 'timeout', stage: 'whole_call' }, 'the answer took too long');

export const callFailed = ({ name }: CalledModel, failure: ProviderFailure, message: string) =>
  new ProviderError(message, { failure, provider: name.split('/', 1).join(), model: name });

// Limits waiting to the life of the signal, also for sources that ignore it.

/** Passes the source's values on; throws the signal's reason as soon as it aborts. */
export async function* untilAborted<T>(
  source: AsyncIterable<T>,
  signal: AbortSignal,
): AsyncGenerator<T, void, void> {
  signal.throwIfAborted();
  const iterator = source[Symbol.asyncIterator]();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  using _aborting = onAbort(signal, () => reject(signal.reason));
  let isOver = false;
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), aborted]);
      isOver = next.done === true;
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    // Not awaited: a source that ignores the signal would delay the turn.
    if (!isOver) iterator.return?.().catch(() => undefined);
  }
}

// Charges a model call to its payer: every attempt is reserved before it is made and settled after
// it.

type MeteredCall = {
  /** The purpose, as figures about model calls name it. */
  readonly role: string;
  readonly turnId?: TurnId;
  readonly maxTokens: number;
  readonly thinkingBudget?: number;
  /** A money limit applies that is not a budget of the payer. */
  readonly countsMoney?: boolean;
  readonly settled?: PlannedCall['settled'];
  readonly turn?: PlannedCall['turn'];
  /** Gets the call if it is abandoned. */
  readonly restarted?: SharedCall[];
  /** Estimate of the input; computed before each attempt. */
  inputTokens(): number;
  /** Measures the drift of a complete answer; left out: not measured. */
  drift?(): Drift;
};

/** @throws SpendingRefusedError from `begin` where the budget is used up */
export function meterOf(turn: TurnContext, call: ModelCall, watch?: LoopWatch): CallMeter {
  const { messages, settled, restarted, turnLimits } = turn.input;
  const [{ message: payer }] = messages;
  const input = { ...turn.input, rights: turn.rights.current };
  return chargedMeter(turn.spending, payer, {
    ...call.request,
    role: turnLimits?.role ?? 'turn',
    turnId: turn.input.turnId,
    inputTokens: () => expectedTokens(turn, call),
    ...defined({ settled, restarted: settled && restarted }),
    ...defined({ drift: watch && (() => driftIn(turn, watch)) }),
    ...(turnLimits === undefined ? { turn: input } : {}),
  });
}

/** @throws SpendingRefusedError from `begin` where the budget is used up */
export function chargedMeter(
  spending: SpendingGuard,
  payer: Payer,
  {
    maxTokens,
    thinkingBudget = 0,
    countsMoney,
    inputTokens,
    drift,
    settled,
    restarted,
    turn,
    role,
    turnId,
  }: MeteredCall,
): CallMeter {
  const whatFor = { role, ...defined({ turnId }) };
  return {
    about: whatFor,
    async begin(model, signal, at = {}) {
      const outputTokens = maxTokens + thinkingBudget;
      const tokens = { inputTokens: inputTokens(), outputTokens };
      const more = defined({ countsMoney, settled, turn });
      const planned = { payer, model, ...whatFor, ...tokens, ...more, ...at };
      const reserved = await spending.reserve(planned, signal);
      if (reserved.kind === 'refused') throw new SpendingRefusedError(reserved);
      return {
        maxTokens: Math.max(1, Math.min(maxTokens, reserved.outputTokens - thinkingBudget)),
        end({ answerChars, ...how }) {
          const answerTokens = Math.ceil(answerChars / CHARS_PER_TOKEN);
          if (how.kind === 'failed' && how.failure.kind === 'cancelled') {
            const usage = { inputTokens: tokens.inputTokens, outputTokens: answerTokens };
            restarted?.push({ role: RESTARTED, model, usage: { ...usage, cachedTokens: 0 } });
          }
          reserved.settle({ ...how, answerTokens, ...defined({ drift: drift?.() }) });
        },
      };
    },
  };
}
