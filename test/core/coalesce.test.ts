import { describe, expect, it } from 'vitest';
import type { QueuedMessage } from '../../src/kernel/bus/bus.ts';
import { comesApart } from '../../src/kernel/turns/batch.ts';
import { coalesceWaitMs, isLikelyComplete } from '../../src/kernel/turns/rules/coalesce.ts';
import { message } from '../contract/bus-bench.ts';

const policy = { quietMs: 400, maxWaitMs: 3000, maxMessages: 3, continuationMs: 1500 };
const at = (receivedAt: number, length = 10) => ({ receivedAt, length });

describe('the wait for the rest of a question', () => {
  it('counts from the last message', () => {
    expect(coalesceWaitMs([at(1000)], policy, 4096, 1000)).toBe(400);
    expect(coalesceWaitMs([at(1000), at(1300)], policy, 4096, 1300)).toBe(400);
    expect(coalesceWaitMs([at(1000), at(1300)], policy, 4096, 1700)).toBe(0);
  });

  it('ends at its cap however fast a person writes', () => {
    expect(coalesceWaitMs([at(0), at(2900)], policy, 4096, 2900)).toBe(100);
    expect(coalesceWaitMs([at(0), at(3100)], policy, 4096, 3100)).toBe(0);
  });

  it('ends when enough messages came', () => {
    expect(coalesceWaitMs([at(0), at(1), at(2)], policy, 4096, 2)).toBe(0);
  });

  it('is longer behind a part that fills the limit of a message', () => {
    expect(coalesceWaitMs([at(0, 4090)], policy, 4096, 0)).toBe(1500);
    expect(coalesceWaitMs([at(0, 3000)], policy, 4096, 0)).toBe(400);
  });

  it('is longer behind one that says that more may come, as the pictures of an album do', () => {
    const part = { ...at(0), mayContinue: true };
    expect(coalesceWaitMs([part], policy, 4096, 0)).toBe(1500);
    expect(coalesceWaitMs([part, at(100)], policy, 4096, 100)).toBe(400);
  });

  it('is over for what waited long already, as after a restart', () => {
    expect(coalesceWaitMs([at(0)], policy, 4096, 86_400_000)).toBe(0);
  });
});

describe('a message behind others', () => {
  const queued = (receivedAt: number): QueuedMessage => ({
    seq: receivedAt,
    message: { ...message('a', 'm'), receivedAt },
  });
  const comes = (receivedAt: number, quietMs: number) =>
    comesApart([queued(1000), queued(1300)], queued(receivedAt), { ...policy, quietMs }, 4096);

  it('is no part of their question once the wait is over', () => {
    expect(comes(1650, 400)).toBe(false);
    expect(comes(1750, 400)).toBe(true);
    expect(comes(1300, 0)).toBe(true);
  });

  it('comes no earlier than they do, also where the clock was set back', () => {
    expect(comes(900, 0)).toBe(true);
    expect(comes(900, 400)).toBe(false);
  });
});

describe('a question that is likely complete', () => {
  it('is a single message some time after the one before', () => {
    expect(isLikelyComplete([at(10_000)], undefined, 4096)).toBe(true);
    expect(isLikelyComplete([at(10_000)], 6_000, 4096)).toBe(true);
    expect(isLikelyComplete([at(10_000)], 7_500, 4096)).toBe(false);
    expect(isLikelyComplete([at(10_000), at(10_100)], undefined, 4096)).toBe(false);
  });

  it('is no part that fills the limit, no part of an album, and nothing forwarded', () => {
    expect(isLikelyComplete([at(0, 4090)], undefined, 4096)).toBe(false);
    expect(isLikelyComplete([{ ...at(0), mayContinue: true }], undefined, 4096)).toBe(false);
    expect(isLikelyComplete([{ ...at(0), isPart: true }], undefined, 4096)).toBe(false);
  });
});
