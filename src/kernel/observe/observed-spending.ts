// The guard of the budgets with every try of a model call measured: each of them passes here, those of
// side work too.

import type { CallEnd, PlannedCall, SpendingGuard } from '../../agent/spending.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ProviderFailure } from '../message/errors.ts';
import { sessionKeyOf } from '../message/message.ts';
import type { ModelCallRecord } from './telemetry.ts';

export function observedSpending(
  spending: SpendingGuard,
  called: (record: ModelCallRecord) => void,
  clock: Clock,
): SpendingGuard {
  return {
    modelFor: (payer, model, cheaper) => spending.modelFor(payer, model, cheaper),
    async reserve(call, signal) {
      const reserved = await spending.reserve(call, signal);
      if (reserved.kind === 'refused') return reserved;
      const from = { at: clock.now(), started: clock.monotonic() };
      let isOver = false;
      return {
        ...reserved,
        settle(end) {
          reserved.settle(end);
          if (isOver) return;
          isOver = true;
          const durationMs = Math.round(clock.monotonic() - from.started);
          called({ ...recordOf(call, end), at: from.at, durationMs });
        },
      };
    },
  };
}

function recordOf(call: PlannedCall, end: CallEnd): Omit<ModelCallRecord, 'at' | 'durationMs'> {
  const { payer, model, base, role, turnId, waitedMs } = call;
  const { answerTokens, drift } = end;
  const known = {
    ...({ kind: 'model_call', role, model, answerTokens } as const),
    session: sessionKeyOf(payer.chat),
    ...(turnId === undefined ? {} : { turnId }),
    ...(base === undefined ? {} : { base }),
    ...(waitedMs === undefined ? {} : { waitedMs }),
    ...(drift === undefined ? {} : { drift }),
  };
  if (end.kind === 'finished') {
    return { ...known, status: 'ok', ...(end.usage === undefined ? {} : { usage: end.usage }) };
  }
  const { failure } = end;
  const httpStatus = 'status' in failure ? failure.status : undefined;
  const detail = detailOf(failure);
  return {
    ...known,
    status: failure.kind,
    ...(httpStatus === undefined ? {} : { httpStatus }),
    ...(detail === undefined ? {} : { detail }),
  };
}

/** Never a vendor's words: they may hold what was asked. */
function detailOf(failure: ProviderFailure): string | undefined {
  switch (failure.kind) {
    case 'timeout':
      return failure.stage;
    case 'auth':
      return failure.reason;
    case 'server':
      return failure.isLoading === true ? 'loading' : undefined;
    case 'rate_limited':
      return failure.retryAfterMs === undefined ? undefined : `retry in ${failure.retryAfterMs} ms`;
    case 'context_overflow':
      return failure.contextTokens === undefined ? undefined : `of ${failure.contextTokens} tokens`;
    default:
      return undefined;
  }
}
