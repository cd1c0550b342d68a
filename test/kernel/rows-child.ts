// A process that adds to one row of a store as often as it is told: <path or URL> <times>.

import { createRows } from '../../src/kernel/rows.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { systemClock as clock } from '../../src/lib/time/clock.ts';
import { openAt } from '../support/open-store.ts';
import { COUNTS } from './counts.ts';

const [path = '', times = ''] = process.argv.slice(2);
const store = await openAt(path, clock, log);
const counts = createRows(store)(COUNTS);
for (let time = 0; time < Number(times); time += 1) {
  await counts.change('all', (row) => ({ id: 'all', count: (row?.count ?? 0) + 1 }));
}
await store[Symbol.asyncDispose]();
