// Rows that are kept in memory are never newer or older than those on the disk.

import { expect, it } from 'vitest';
import { withRecentRows } from '../../../src/channels/whatsapp/recent-rows.ts';
import { systemClock } from '../../../src/lib/time/clock.ts';
import { createMemoryHost } from '../../support/memory-host.ts';

const KEY = 'person/chat/one';

/** A store whose writes reach the disk when they are let through, and whose reads are counted. */
function slowStore() {
  const disk = createMemoryHost(systemClock).state;
  const waiting: PromiseWithResolvers<void>[] = [];
  let reads = 0;
  const rows = withRecentRows({
    ...disk,
    get(key) {
      reads += 1;
      return disk.get(key);
    },
    async set(key, value) {
      const write = Promise.withResolvers<void>();
      waiting.push(write);
      await write.promise;
      await disk.set(key, value);
    },
    async expire() {
      await disk.delete(KEY);
      return 1;
    },
  });
  return { rows, waiting, reads: () => reads };
}

it('asks the store once for a row, also for one that is missing', async () => {
  const { rows, reads } = slowStore();
  expect([await rows.get(KEY), await rows.get(KEY)]).toEqual([undefined, undefined]);
  expect(reads()).toBe(1);
});

it('shows a row once it is on the disk', async () => {
  const { rows, waiting, reads } = slowStore();
  const written = rows.set(KEY, 'new');
  expect(await rows.get(KEY)).toBeUndefined();
  waiting[0]?.resolve();
  await written;
  expect(await rows.get(KEY)).toBe('new');
  expect(reads()).toBe(1);
});

it('keeps nothing of a write that failed, or that another one followed', async () => {
  const { rows, waiting } = slowStore();
  const failed = rows.set(KEY, 'lost');
  waiting[0]?.reject(new Error('no space'));
  await expect(failed).rejects.toThrow('no space');
  expect(await rows.get(KEY)).toBeUndefined();
  const both = Promise.all([rows.set(KEY, 'first'), rows.set(KEY, 'second')]);
  waiting[1]?.resolve();
  expect(await rows.get(KEY)).not.toBe('first');
  waiting[2]?.resolve();
  await both;
  expect(await rows.get(KEY)).toBe('second');
});

it('forgets what may have expired', async () => {
  const { rows, waiting } = slowStore();
  const written = rows.set(KEY, 'old');
  waiting[0]?.resolve();
  await written;
  await rows.expire('person/', systemClock.now());
  expect(await rows.get(KEY)).toBeUndefined();
});
