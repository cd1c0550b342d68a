// The model alone as a benchmark asks it: through the registry, paid for like every call, with a
// deadline of its own.

import { chargedMeter } from '../../agent/charge.ts';
import { textTokens } from '../../agent/rules/tokens.ts';
import type { SpendingGuard } from '../../agent/spending.ts';
import { untilAborted } from '../../agent/until-aborted.ts';
import type { Payer } from '../../features/spending/rules/budget-limits.ts';
import { ProviderError, type ProviderFailure } from '../../kernel/message/errors.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ModelHandle } from '../../providers/provider.ts';
import { EVAL_ROLE } from './cost.ts';
import type { Question, Reply, Subject } from './eval.ts';

export type SubjectDeps = {
  readonly handle: ModelHandle;
  readonly spending: SpendingGuard;
  readonly payer: Payer;
  readonly clock: Clock;
  readonly maxTokens: number;
};

const DEADLINE_MS = 300_000;

export function createSubject(deps: SubjectDeps): Subject {
  const { handle, spending, payer, clock, maxTokens } = deps;

  async function ask({ system, said, temperature }: Question, signal: AbortSignal): Promise<Reply> {
    const messages = said.map(({ role, text }) =>
      role === 'user'
        ? ({ role, text } as const)
        : ({ role, text, toolCalls: [], thinking: [] } as const),
    );
    const sizes = textTokens([system, ...said.map(({ text }) => text)].join('\n'));
    const meter = chargedMeter(spending, payer, {
      role: EVAL_ROLE,
      maxTokens,
      inputTokens: () => sizes,
    });
    const started = clock.monotonic();
    const request = {
      system: [{ text: system, stable: true }],
      ...{ messages, tools: [], maxTokens, temperature },
    };
    for await (const event of untilAborted(handle.stream(request, signal, meter), signal)) {
      if (event.type !== 'finished') continue;
      const ms = Math.round(clock.monotonic() - started);
      return { text: event.text.trim(), isCut: event.stop === 'length', ms };
    }
    throw failed(handle, { kind: 'malformed' }, 'the answer did not end');
  }

  return {
    model: handle.name,
    contextTokens: handle.contextTokens,
    maxTokens,
    async ask(question, signal) {
      const late = new AbortController();
      const deadline = clock.timer(DEADLINE_MS, () =>
        late.abort(failed(handle, { kind: 'timeout', stage: 'whole_call' }, 'it took too long')),
      );
      try {
        return await ask(question, AbortSignal.any([signal, late.signal]));
      } finally {
        deadline[Symbol.dispose]();
      }
    },
  };
}

function failed({ name }: ModelHandle, failure: ProviderFailure, message: string): ProviderError {
  return new ProviderError(message, { failure, provider: name.split('/', 1).join(), model: name });
}
