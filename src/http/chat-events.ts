// How a chat's events are written: messages with their sequence number as id, so that a reader
// resumes behind it; pictures of running turns whole, or as the difference to the one before.

import type { DoorEvent } from '../channels/door.ts';
import type { LiveUpdate } from '../core/event.ts';
import type { TurnId } from '../core/ids.ts';
import { eventText } from './event-stream.ts';
import { deltaOf } from './live-delta.ts';

/** For one connection: `delta` tells the difference to what this connection has. */
export function chatEventWriter(live: 'whole' | 'delta'): (event: DoorEvent) => string {
  return live === 'delta' ? deltaWriter() : writeWhole;
}

function writeWhole(event: DoorEvent): string {
  return event.type === 'said' ? eventText(event, event.seq) : eventText(event);
}

function deltaWriter(): (event: DoorEvent) => string {
  const sent = new Map<TurnId, LiveUpdate>();
  return (event) => {
    if (event.type === 'said') return writeWhole(event);
    const { update } = event;
    const delta = deltaOf(sent.get(update.turnId), update);
    if (update.phase === 'ended') sent.delete(update.turnId);
    else sent.set(update.turnId, update);
    return eventText({ type: 'live', ...delta });
  };
}
