// The guard of the budgets with every try of a model call measured: each of them passes here, those of
// side work too.

import type { CallEnd, PlannedCall, SpendingGuard } from '../agent/spending.ts';
import { sessionKeyOf } from '../core/message.ts';
import type { Clock } from '../lib/clock.ts';
import type { ModelCallRecord, Telemetry } from '../telemetry/telemetry.ts';

export function observedSpending(
  spending: SpendingGuard,
  telemetry: Telemetry,
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
          telemetry.record({ ...recordOf(call, end), at: from.at, durationMs });
        },
      };
    },
  };
}

function recordOf(call: PlannedCall, end: CallEnd): Omit<ModelCallRecord, 'at' | 'durationMs'> {
  const { payer, model, role, turnId, waitedMs } = call;
  const { answerTokens, drift } = end;
  const known = {
    ...({ kind: 'model_call', role, model, answerTokens } as const),
    session: sessionKeyOf(payer.chat),
    ...(turnId === undefined ? {} : { turnId }),
    ...(waitedMs === undefined ? {} : { waitedMs }),
    ...(drift === undefined ? {} : { drift }),
  };
  if (end.kind === 'finished') {
    return { ...known, status: 'ok', ...(end.usage === undefined ? {} : { usage: end.usage }) };
  }
  const { failure } = end;
  const httpStatus = 'status' in failure ? failure.status : undefined;
  return {
    ...known,
    status: failure.kind,
    ...(httpStatus === undefined ? {} : { httpStatus }),
  };
}
