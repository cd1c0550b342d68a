// One leader per resource. In the embedded store the home lock makes this process the only one, so
// leading is a queue in memory: nothing durable, nothing stale after a crash, no heartbeat.

import { createLanes } from '../../lib/async.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { MessageBus } from './bus.ts';

export function createLeadership(clock: Clock): MessageBus['lead'] {
  const lanes = createLanes();
  let lastEpoch = 0;
  return (resource, run, signal) =>
    lanes.run(resource, async () => {
      if (signal.aborted) return;
      // Grows over restarts too, without a write.
      lastEpoch = Math.max(lastEpoch + 1, clock.now());
      await run(signal, lastEpoch);
    });
}
