// The gate before a local server by itself: what a call that is given up leaves behind.

import { expect, it } from 'vitest';
import { LocalGate } from '../../src/providers/local-site.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const SIGNAL = new AbortController().signal;

it('has a place back that was granted in the moment in which its call was given up', async () => {
  const gate = new LocalGate(createMovableClock());
  const first = await gate.enter(1, SIGNAL);
  const call = new AbortController();
  const second = gate.enter(1, call.signal).catch(() => undefined);
  first[Symbol.dispose]();
  call.abort();
  await second;
  expect(gate.load).toMatchObject({ running: 0, waiting: 0 });
  const third = await gate.enter(1, SIGNAL);
  expect(third.waitedMs).toBe(0);
  for (const _twice of [1, 2]) third[Symbol.dispose]();
  expect([gate.load.running, gate.ahead(1)]).toEqual([0, 0]);
});
