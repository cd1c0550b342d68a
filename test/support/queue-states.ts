// Until a gateway has nothing in a state, by its own metrics: what a kill or a moved clock meets there comes again.

import { expect } from 'vitest';
import type { GatewayProcess } from './gateway-process.ts';

/** Of what is `outbound` the gateway does not know yet that it arrived. */
export type QueueState = 'pending' | 'running' | 'outbound';

export async function hasNone(
  { address, credentials: headers }: GatewayProcess,
  ...states: readonly QueueState[]
): Promise<void> {
  const counts = async () => {
    const text = await (await fetch(`${address}/metrics`, { headers })).text();
    const countOf = (state: string) =>
      new RegExp(`^nanobot_queue_messages\\{state="${state}"\\} (\\d+)$`, 'm').exec(text)?.[1];
    return states.map(countOf);
  };
  await expect.poll(counts).toEqual(states.map(() => '0'));
}
