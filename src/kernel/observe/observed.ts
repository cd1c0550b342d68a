// The agent with every turn and tool call recorded, and the spending guard with every try of a
// model call recorded.

import type { Agent, CallEnd, PlannedCall } from '../../agent/agent.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { estimatedUsage } from '../../providers/rules/provider-failure.ts';
import type { ModelGuard } from '../guards.ts';
import type { ProviderFailure } from '../message/errors.ts';
import type { CallId } from '../message/ids.ts';
import { accountName } from '../message/ids.ts';
import type { AgentEvent } from '../message/message.ts';
import { sessionKeyOf } from '../message/message.ts';
import type { Measuring } from './build-telemetry.ts';
import type { ModelCallRecord, Telemetry, TurnRecord } from './telemetry.ts';

export function observedAgent<T extends Agent>(
  agent: T,
  { telemetry, calls }: Pick<Measuring, 'telemetry' | 'calls'>,
  clock: Clock,
): T {
  return {
    ...agent,
    async *run(input, context, signal) {
      const { session, turnId, chat, messages } = input;
      const from = { at: clock.now(), started: clock.monotonic() };
      const seeTool = toolTimes({ session, turnId }, telemetry, clock);
      const models = calls.follow(turnId);
      const events = agent.run(input, context, signal);
      let outcome: TurnRecord['outcome'] = 'interrupted';
      try {
        for (;;) {
          const next = await events.next();
          if (next.done === true) {
            outcome = next.value.kind;
            return next.value;
          }
          models.see(next.value);
          seeTool(next.value);
          yield next.value;
        }
      } finally {
        await events.return(undefined as never);
        models[Symbol.dispose]();
        const durationMs = Math.round(clock.monotonic() - from.started);
        const account = accountName(chat);
        const waitedMs = Math.max(0, from.at - messages[0].message.receivedAt);
        const turn = { at: from.at, durationMs, waitedMs, session, turnId, account, outcome };
        telemetry.record({ kind: 'turn', ...turn });
      }
    },
  };
}

function toolTimes(
  turn: Pick<TurnRecord, 'session' | 'turnId'>,
  telemetry: Telemetry,
  clock: Clock,
): (event: AgentEvent) => void {
  const running = new Map<CallId, { tool: string; at: number; started: number }>();
  return (event) => {
    if (event.type === 'tool_started') {
      const begun = { tool: event.name, at: clock.now(), started: clock.monotonic() };
      running.set(event.callId, begun);
    }
    if (event.type !== 'tool_finished') return;
    const begun = running.get(event.callId);
    if (begun === undefined) return;
    running.delete(event.callId);
    const durationMs = Math.round(clock.monotonic() - begun.started);
    const { tool, at } = begun;
    const { failure } = event;
    const status = event.status === 'ok' ? 'ok' : 'failed';
    const how = { status, ...(failure === undefined ? {} : { failure }) } as const;
    telemetry.record({ kind: 'tool_call', ...turn, tool, at, durationMs, ...how });
  };
}

/** Records each model call when it has ended. */
export const recordingGuard = (
  called: (record: ModelCallRecord) => void,
  clock: Clock,
): ModelGuard => ({
  name: 'record',
  async reserve(call, signal, next) {
    const reserved = await next(call, signal);
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
});

function recordOf(call: PlannedCall, end: CallEnd): Omit<ModelCallRecord, 'at' | 'durationMs'> {
  const { payer, model, base, role, turnId, waitedMs } = call;
  const { drift } = end;
  const known = {
    ...({ kind: 'model_call', role, model } as const),
    estimated: estimatedUsage(call.inputTokens, end),
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

/** Never a vendor's text: it may contain the request. */
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
