// An idle bus costs nothing: no write, so no fsync, however long nobody writes to the agent.

import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import {
  echo,
  eventually,
  queued,
  scriptedCourier,
  startDelivery,
  startWork,
} from '../contract/bus-bench.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

it('writes nothing to the disk while nothing happens', async () => {
  const folder = await temporaryFolder();
  const clock = createMovableClock();
  const options = { path: join(folder, 'state.db'), clock, log: silentLogger };
  {
    await using store = await openEmbeddedStore(options);
    await using witness = await openEmbeddedStore(options);
    const limits = { maxPendingPerChat: 200, maxPending: 10_000 };
    const bus = createMessageBus({ store, clock, log: silentLogger, limits });
    const courier = scriptedCourier();
    const work = startWork(bus, echo().handle);
    const delivery = startDelivery(bus, courier);
    await bus.accept([queued('a', '1')]);
    await eventually(clock, () => courier.sent.length === 1);
    await clock.advance(0);
    expect(witness.changedOutside()).toBe(true);
    await clock.advance(600_000);
    expect(witness.changedOutside()).toBe(false);
    await work.stop();
    await delivery.stop();
  }
});
