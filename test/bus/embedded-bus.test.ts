// The message bus over the embedded store keeps the contract.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { busContract } from '../contract/bus.ts';
import { message, queued, resultOf, startWork } from '../contract/bus-bench.ts';
import { makeEmbeddedBench } from './embedded-bench.ts';

busContract('embedded bus', makeEmbeddedBench);

const CRON = { kind: 'system', source: 'cron' } as const;

it('a turn of the gateway’s own message begins once its sender knows that it is stored', async () => {
  await using rig = await openInBackground();
  const { bus } = rig;
  const order: string[] = [];
  const begun = Promise.withResolvers<void>();
  const work = startWork(bus, async (turn) => {
    order.push('begins');
    begun.resolve();
    return resultOf(turn);
  });
  await bus.accept([{ kind: 'queue', message: { ...message('a', '1'), sender: CRON } }]);
  order.push('stored');
  await begun.promise;
  expect(order).toEqual(['stored', 'begins']);
  await work.stop();
});

it('a turn that begins while the disk works on its message has no follower in it', async () => {
  await using rig = await openInBackground();
  const { bus } = rig;
  const order: string[] = [];
  const heard = Promise.withResolvers<string>();
  const reported = Promise.withResolvers<void>();
  const work = startWork(bus, async (turn) => {
    order.push('begins');
    const over = new AbortController();
    const follower = turn.arrival(over.signal).then(
      () => 'a follower',
      () => 'nothing',
    );
    await reported.promise;
    over.abort();
    heard.resolve(await follower);
    return resultOf(turn);
  });
  await bus.accept([queued('a', '1')]);
  order.push('on the disk');
  reported.resolve();
  expect(await heard.promise).toBe('nothing');
  expect(order).toEqual(['begins', 'on the disk']);
  await work.stop();
});

async function openInBackground() {
  const deps = { clock: systemClock, log: silentLogger };
  const stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-bus-'));
  stack.defer(() => rm(folder, { recursive: true }));
  const path = join(folder, 'state.db');
  const store = stack.use(await openEmbeddedStore({ path, ...deps, inBackground: true }));
  const limits = { maxPendingPerChat: 10, maxPending: 10 };
  const bus = stack.use(createMessageBus({ store, limits, ...deps }));
  return { bus, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}
