// A chat's events as server-sent events (HTML Living Standard, 9.2): messages with their sequence
// number as id, so that a reader resumes behind it; a heartbeat shows both ends that the other lives.

import type { DoorEvent } from '../channels/door.ts';
import type { LiveUpdate } from '../core/event.ts';
import type { TurnId } from '../core/ids.ts';
import type { Clock } from '../lib/clock.ts';
import { deltaOf } from './live-delta.ts';

const HEARTBEAT_MS = 15_000;
const HEARTBEAT = ': still here\n\n';
/** Makes the client see its connection before anything is said. */
const GREETING = ': connected\n\n';

export type StreamOptions = {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Pictures of running turns whole, or as the difference to what this connection has. */
  readonly live: 'whole' | 'delta';
};

/** Ends when the events end; `signal` has to end them. */
export async function* serverSentEvents(
  events: AsyncIterable<DoorEvent>,
  { clock, signal, live }: StreamOptions,
): AsyncGenerator<string, void, void> {
  const render = live === 'delta' ? deltaRenderer() : renderWhole;
  const iterator = events[Symbol.asyncIterator]();
  yield GREETING;
  let next = iterator.next();
  try {
    while (!signal.aborted) {
      const first = await firstWithin(next, clock, HEARTBEAT_MS);
      if (first === undefined) {
        yield HEARTBEAT;
        continue;
      }
      if (first.done === true) return;
      yield render(first.value);
      next = iterator.next();
    }
  } finally {
    await iterator.return?.();
  }
}

async function firstWithin<T>(
  promise: Promise<T>,
  clock: Clock,
  ms: number,
): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = clock.timer(ms, () => resolve(undefined));
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer[Symbol.dispose]();
  }
}

function renderWhole(event: DoorEvent): string {
  const id = event.type === 'said' ? `id: ${event.seq}\n` : '';
  return `${id}data: ${JSON.stringify(event)}\n\n`;
}

function deltaRenderer(): (event: DoorEvent) => string {
  const sent = new Map<TurnId, LiveUpdate>();
  return (event) => {
    if (event.type === 'said') return renderWhole(event);
    const { update } = event;
    const delta = deltaOf(sent.get(update.turnId), update);
    if (update.phase === 'ended') sent.delete(update.turnId);
    else sent.set(update.turnId, update);
    return `data: ${JSON.stringify({ type: 'live', ...delta })}\n\n`;
  };
}
