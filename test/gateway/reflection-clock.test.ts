// When the memory is thought over without anybody asking: never unless configured, once per span where
// there is something new, once more after a kill, and once for a wish of the machine's user.

import { expect, it } from 'vitest';
import type { ThoughtOver } from '../../src/features/memory/reflection.ts';
import {
  createReflectionClock,
  type ReflectionSettings,
  wantReflection,
} from '../../src/features/memory/reflection.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMemoryStore } from '../support/memory-host.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const HOUR = 3_600_000;

function createBench(settings: ReflectionSettings) {
  const clock = createMovableClock();
  const state = createMemoryStore();
  const reflected: string[] = [];
  const told: string[] = [];
  const now = { revision: 1, isQuiet: false, stamp: 'a', kind: 'asked', isBroken: false };
  const thinking = createReflectionClock({
    ...{ state, clock, log: silentLogger, settings: () => settings },
    revision: () => now.revision,
    isQuiet: () => now.isQuiet,
    stamp: async () => now.stamp,
    async reflect(name, apply) {
      reflected.push(`${apply} ${name}`);
      if (now.isBroken) throw new Error('killed');
      return { kind: now.kind as ThoughtOver['kind'], words: 'words' };
    },
    tell: async (name) => void told.push(name),
  });
  async function during(ms: number) {
    const stop = new AbortController();
    const running = thinking.run(stop.signal);
    for (let left = ms; left >= 0; left -= HOUR) await clock.advance(Math.min(HOUR, ms));
    stop.abort();
    await running;
  }
  return { clock, state, reflected, told, now, during };
}

it('is never thought over by itself unless configured, and for a wish once', async () => {
  const { clock, state, reflected, told, now, during } = createBench({
    everyHours: 0,
    apply: 'ask',
  });
  await during(48 * HOUR);
  expect(reflected).toEqual([]);
  await wantReflection(state, clock.now());
  now.revision = 2;
  now.isBroken = true;
  await during(0);
  now.isBroken = false;
  now.kind = 'left';
  await during(5 * HOUR);
  expect(reflected.length).toBeGreaterThanOrEqual(2);
  // The same name: what was proposed before the kill is proposed as it was.
  expect(new Set(reflected).size).toBe(1);
  expect(new Set(told).size).toBe(1);
  const before = reflected.length;
  await during(5 * HOUR);
  expect(reflected).toHaveLength(before);
});

it('is thought over once per span, where there is something new and nobody sleeps', async () => {
  const { reflected, told, now, during } = createBench({ everyHours: 24, apply: 'write' });
  now.isQuiet = true;
  await during(2 * HOUR);
  expect(reflected).toEqual([]);
  now.isQuiet = false;
  now.kind = 'written';
  await during(20 * HOUR);
  expect(reflected).toEqual(['write after-0']);
  expect(told).toEqual(['after-0']);
  await during(30 * HOUR);
  expect(reflected).toHaveLength(1);
  now.stamp = 'b';
  await during(30 * HOUR);
  expect(reflected).toHaveLength(2);
});
