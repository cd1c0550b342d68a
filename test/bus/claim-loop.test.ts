import { expect, it } from 'vitest';
import { createClaimLoop } from '../../src/kernel/bus/claim-loop.ts';
import { systemClock } from '../../src/lib/time/clock.ts';

it('claims again after the store could claim nothing, as for a process that was taken for dead', async () => {
  const stop = new AbortController();
  const performed = Promise.withResolvers<string>();
  const refused = Promise.withResolvers<void>();
  let claims = 0;
  const loop = createClaimLoop<string>({
    clock: systemClock,
    places: () => 1,
    stopGraceMs: 0,
    failureGraceMs: 0,
    async claim(places) {
      claims += 1;
      if (claims === 1) {
        refused.resolve();
        return { claimed: [], nextAt: undefined };
      }
      const claimed = places() > 0 && claims === 2 ? ['turn'] : [];
      return { claimed, nextAt: undefined };
    },
    perform: async (claimed) => performed.resolve(claimed),
    interrupt: () => undefined,
  });
  const running = loop.run(stop.signal);
  await refused.promise;
  // What follows the answer of the store has happened.
  await new Promise((resolve) => setImmediate(resolve));
  loop.wake();
  expect(await performed.promise).toBe('turn');
  stop.abort();
  await running;
});
