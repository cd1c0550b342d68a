// A process for the power cut test: writes numbered rows and says the number of each that its promise
// was kept for. The log is renewed now and then, while more is written: at its place on the disk, or
// emptied.

import { writeSync } from 'node:fs';
import { leaveSyncsToCaller, openDatabase } from '../../src/kernel/bus/store/database.ts';
import { GroupCommit, WriteAheadLog } from '../../src/kernel/bus/store/group-commit.ts';
import { bindOperations } from '../../src/kernel/bus/store/operations.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';

const ROWS = 240;
const RENEWED_EVERY = 40;
const EMPTIED_EVERY = 120;
const LANES = 3;
const STDOUT = 1;

const [path = ''] = process.argv.slice(2);
const database = openDatabase(path);
leaveSyncsToCaller(database);
const wal = new WriteAheadLog(path);
const commits = new GroupCommit(database, path, { wal, clock: systemClock, log: silentLogger });
const rows = bindOperations(commits, systemClock, 'power-cut').scope('rows');
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
    if (row % RENEWED_EVERY === 0)
      void commits.renew(row % EMPTIED_EVERY === 0 ? 'TRUNCATE' : 'RESTART');
  }
}

await Promise.all(Array.from({ length: LANES }, lane));
await commits.renew('RESTART');
await rows.set('0', 'after');
writeSync(STDOUT, 'kept 0\n');
process.kill(process.pid, 'SIGKILL');
