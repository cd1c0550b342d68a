// What a turn's shared calls leave to be counted at its end.

import { expect, test } from 'vitest';
import { SharedCalls } from '../../src/agent/turn-context.ts';

const used = (tokens: number) => ({ inputTokens: tokens, outputTokens: 0, cachedTokens: 0 });

test('a call that an entry has is counted once, whatever another model was asked after it', () => {
  const calls = new SharedCalls();
  const digest = { role: 'runner', model: 'small', usage: used(7) };
  calls.add({ role: 'router', model: 'fast' });
  calls.add(digest);
  calls.recorded('fast', undefined);
  expect(calls.unrecorded).toEqual([digest]);
});

test('an entry with the usage of two calls has both, and no earlier one', () => {
  const calls = new SharedCalls();
  const earlier = { role: 'router', model: 'fast', usage: used(5) };
  for (const call of [earlier, { ...earlier, usage: used(3) }, { ...earlier, usage: used(4) }]) {
    calls.add(call);
  }
  calls.recorded('fast', used(7));
  expect(calls.unrecorded).toEqual([earlier]);
});
