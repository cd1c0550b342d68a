// Side work by a cheap model, outside of turns and without tools: a summary, a check, a title. It is
// paid for like an answer; what it says is never obeyed, only shown or stored by whoever asked.

import type { Payer } from '../features/spending/rules/budget-limits.ts';
import { ProviderError, type ProviderFailure } from '../kernel/message/errors.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { ModelEvent, ModelHandle, ModelRegistry } from '../providers/provider.ts';
import { chargedMeter } from './charge.ts';
import { textTokens } from './rules/tokens.ts';
import type { SpendingGuard } from './spending.ts';
import { TurnTime } from './turn-context.ts';

const TIMEOUT_MS = 120_000;

/** What for, as figures about model calls name it. */
export type SideRole = 'compaction' | 'mail_summary' | 'reflection' | 'claim_check';

export type SideCall = {
  readonly role: SideRole;
  readonly payer: Payer;
  /** The model of the conversation, whose vendor's cheaper one is asked; undefined = the default. */
  readonly besides?: string;
  readonly system: string;
  /** Words of others have to be wrapped already. */
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

export type SideModelDeps = {
  readonly spending: SpendingGuard;
  readonly clock: Clock;
  models(): ModelRegistry;
};

export function createSideModel({ spending, clock, models }: SideModelDeps): SideModel {
  async function ask(
    call: SideCall,
    { handle, time }: { readonly handle: ModelHandle; readonly time: TurnTime },
    signal: AbortSignal,
  ): Promise<string> {
    const { payer, role, system, text, maxTokens } = call;
    const request = {
      system: [{ text: system, stable: true }],
      messages: [{ role: 'user' as const, text }],
      tools: [],
      maxTokens,
    };
    const inputTokens = () => textTokens(system) + textTokens(text);
    const meter = chargedMeter(spending, payer, { role, maxTokens, inputTokens });
    for await (const event of untilAborted(handle.stream(request, signal, meter), signal)) {
      time.goOn();
      if (event.type === 'waiting' && event.ahead > 0) time.standStill();
      if (event.type === 'finished') return answerOf(event, handle);
    }
    throw failed(handle, { kind: 'malformed' }, 'the answer did not end');
  }

  return {
    async complete(call, signal) {
      const registry = models();
      const handle = registry.resolve(registry.fast(call.besides ?? registry.defaultModel));
      const late = new AbortController();
      const time = new TurnTime(clock);
      const deadline = time.limit(TIMEOUT_MS, () => {
        late.abort(
          failed(handle, { kind: 'timeout', stage: 'whole_call' }, 'the answer took too long'),
        );
      });
      try {
        return await ask(call, { handle, time }, AbortSignal.any([signal, late.signal]));
      } finally {
        deadline[Symbol.dispose]();
      }
    },
  };
}

function answerOf(
  { stop, text }: Extract<ModelEvent, { readonly type: 'finished' }>,
  handle: ModelHandle,
): string {
  const answer = text.trim();
  if (stop === 'end' && answer !== '') return answer;
  throw failed(handle, { kind: 'malformed' }, `no usable answer: ${stop}`);
}

function failed({ name }: ModelHandle, failure: ProviderFailure, message: string): ProviderError {
  return new ProviderError(message, { failure, provider: name.split('/', 1).join(), model: name });
}

// Waits for others only as long as the signal allows, also where they ignore it.

/** Passes the source's values on; throws the signal's reason as soon as it aborts. */
export async function* untilAborted<T>(
  source: AsyncIterable<T>,
  signal: AbortSignal,
): AsyncGenerator<T, void, void> {
  signal.throwIfAborted();
  const iterator = source[Symbol.asyncIterator]();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  let isOver = false;
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), aborted]);
      isOver = next.done === true;
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    // Not awaited: a source that ignores the signal would hold the turn.
    if (!isOver) iterator.return?.().catch(() => undefined);
  }
}
