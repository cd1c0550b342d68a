// A process for the power cut test: writes numbered rows and says the number of each that its promise
// was kept for. The log is renewed now and then, while more is written.

import { writeSync } from 'node:fs';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';

const ROWS = 240;
const RENEWED_EVERY = 60;
const LANES = 3;
const STDOUT = 1;

const [path = ''] = process.argv.slice(2);
const store = await openEmbeddedStore({
  ...{ path, clock: systemClock, log: silentLogger },
  inBackground: true,
});
const rows = store.scope('rows');
let next = 0;

async function lane(): Promise<void> {
  while (next < ROWS) {
    next += 1;
    const row = next;
    await rows.set(`${row}`, 'x'.repeat((row * 379) % 3000));
    // Rows that come and go move pages between the lists of SQLite.
    if (row % 5 === 0) await rows.set(`passing ${row}`, 'y'.repeat(6000));
    if (row % 7 === 0) await rows.delete(`passing ${row - 5}`);
    writeSync(STDOUT, `kept ${row}\n`);
    if (row % RENEWED_EVERY === 0) void store.scrub();
  }
}

await Promise.all(Array.from({ length: LANES }, lane));
await store.scrub();
await rows.set('0', 'after');
writeSync(STDOUT, 'kept 0\n');
process.kill(process.pid, 'SIGKILL');
