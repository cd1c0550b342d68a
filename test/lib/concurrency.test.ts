import { getEventListeners } from 'node:events';
import { setImmediate as nextRound } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  createGate,
  createLanes,
  createPermits,
  RecentMap,
  supervise,
  within,
} from '../../src/lib/async.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';

function latch() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

describe('lanes', () => {
  it('run one key in order and different keys side by side', async () => {
    const lanes = createLanes();
    const first = latch();
    const seen: string[] = [];
    const a1 = lanes.run('a', async () => {
      await first.opened;
      seen.push('a1');
    });
    const a2 = lanes.run('a', async () => void seen.push('a2'));
    await lanes.run('b', async () => void seen.push('b1'));
    expect(seen).toEqual(['b1']);
    first.open();
    await Promise.all([a1, a2]);
    expect(seen).toEqual(['b1', 'a1', 'a2']);
  });

  it('go on after a failure and leave nothing behind', async () => {
    const lanes = createLanes();
    await expect(lanes.run('a', () => Promise.reject(new Error('broken')))).rejects.toThrow(
      'broken',
    );
    expect(await lanes.run('a', async () => 1)).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(lanes.size).toBe(0);
  });
});

describe('a deadline', () => {
  const late = () => new Error('late');
  const started = (signal: AbortSignal) => {
    const clock = createMovableClock();
    let inner: AbortSignal | undefined;
    const held = latch();
    const result = within(
      { clock, ms: 1000, signal },
      (given) => {
        inner = given;
        return held.opened.then(() => 'done');
      },
      late,
    );
    result.catch(() => undefined);
    return { clock, held, result, reason: () => inner?.aborted && inner.reason };
  };

  it('ends the work when its time is over', async () => {
    const { clock, result, reason } = started(new AbortController().signal);
    await clock.advance(999);
    expect(reason()).toBe(false);
    await clock.advance(1);
    await expect(result).rejects.toThrow('late');
    expect(reason()).toMatchObject({ name: 'AbortError' });
  });

  it('ends the work for the reason of its caller, also of one that has given up already', async () => {
    const caller = new AbortController();
    const under = started(caller.signal);
    caller.abort('stopped');
    const after = started(caller.signal);
    for (const { result, reason } of [under, after]) {
      await expect(result).rejects.toThrow('late');
      expect(reason()).toBe('stopped');
    }
  });

  it('ends what the work left running, and forgets its caller', async () => {
    const caller = new AbortController();
    const { held, result, reason } = started(caller.signal);
    held.open();
    expect(await result).toBe('done');
    expect(reason()).toMatchObject({ name: 'AbortError' });
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
  });
});

describe('a gate', () => {
  it('lets those that come together pass in groups, in order, and then the next at once', async () => {
    const pass = createGate(2);
    const passed: number[] = [];
    const come = (first: number, last: number) => {
      for (let each = first; each <= last; each += 1) void pass().then(() => passed.push(each));
    };
    come(1, 5);
    await Promise.resolve();
    expect(passed).toEqual([1, 2]);
    await nextRound();
    expect(passed).toEqual([1, 2, 3, 4]);
    await nextRound();
    expect(passed).toEqual([1, 2, 3, 4, 5]);
    await nextRound();
    come(6, 8);
    await Promise.resolve();
    expect(passed).toEqual([1, 2, 3, 4, 5, 6, 7]);
    await nextRound();
    expect(passed).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });
});

describe('permits', () => {
  const { signal } = new AbortController();

  it('are handed out first come, first served', async () => {
    const permits = createPermits(1);
    const held = await permits.acquire(signal);
    const order: number[] = [];
    const waiting = [1, 2, 3].map(async (number) => {
      const permit = await permits.acquire(signal);
      order.push(number);
      permit[Symbol.dispose]();
    });
    held[Symbol.dispose]();
    await Promise.all(waiting);
    expect(order).toEqual([1, 2, 3]);
  });

  it('are not lost with a waiter that gave up', async () => {
    const permits = createPermits(1);
    const held = await permits.acquire(signal);
    const giveUp = new AbortController();
    const abandoned = permits.acquire(giveUp.signal);
    giveUp.abort(new Error('gave up'));
    await expect(abandoned).rejects.toThrow('gave up');
    held[Symbol.dispose]();
    held[Symbol.dispose]();
    const next = await permits.acquire(signal);
    const over = new AbortController();
    const second = permits.acquire(over.signal);
    over.abort(new Error('none left'));
    await expect(second).rejects.toThrow('none left');
    next[Symbol.dispose]();
  });

  it('grow while people wait', async () => {
    const permits = createPermits(1);
    await permits.acquire(signal);
    const second = permits.acquire(signal);
    permits.resize(2);
    await expect(second).resolves.toBeDefined();
  });
});

describe('a supervised task', () => {
  it('is started again, waiting longer each time, until it is told to stop', async () => {
    const clock = createMovableClock();
    const controller = new AbortController();
    const waits: number[] = [];
    let runs = 0;
    const supervised = supervise(
      async () => {
        runs += 1;
        throw new Error('falls over');
      },
      {
        name: 'test',
        signal: controller.signal,
        clock,
        log: silentLogger,
        minMs: 1000,
        maxMs: 8000,
        stableMs: 60_000,
        onFailure: (_error, retryInMs) => {
          waits.push(retryInMs);
          return waits.length < 6 ? 'restart' : 'stop';
        },
      },
    );
    await clock.advance(60_000);
    await supervised;
    expect(runs).toBe(6);
    expect(waits.at(-1)).toBeGreaterThan(waits[0] ?? 0);
    expect(Math.max(...waits)).toBeLessThanOrEqual(8000);
  });
});

describe('a map of bounded size', () => {
  it('forgets what was set longest ago', () => {
    const map = new RecentMap<string, number>(2);
    map.set('a', 1).set('b', 2).set('a', 3).set('c', 4);
    expect([...map]).toEqual([
      ['a', 3],
      ['c', 4],
    ]);
  });
});
