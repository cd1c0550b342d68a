// The thread that reads or writes much of the file. It copies the write-ahead log into the file: most
// of it while commits go on; the rest, and the start of a new log, once it is told that no commit is
// running. Or it copies the whole database into another file and checks that.

import { backup, DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { findDamage, openForCheckpoint, type Renewal, renewLog } from './database.ts';
import type { CopyReport } from './snapshot.ts';

/** Pages of one step, some milliseconds of a disk, and the pause after it. */
const STEP_PAGES = 256;
const STEP_PAUSE_MS = 20;

const port = parentPort;
const { path, copyTo }: { readonly path: string; readonly copyTo?: string } = workerData;
if (copyTo === undefined) renewBehind();
else port?.postMessage(await copy(copyTo));

function renewBehind(): void {
  const reader = readerOf(path);
  const database = openForCheckpoint(path);
  database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  port?.once('message', (how: Renewal) => {
    reader.close();
    renewLog(database, how);
    database.close();
  });
  port?.postMessage('copied');
}

/** Keeps others from restarting the log, for which their commit would wait for the disk. */
function readerOf(file: string): DatabaseSync {
  const reader = openForCheckpoint(file);
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM sqlite_schema').get();
  return reader;
}

/** As of the first read: the copy does not begin anew when somebody writes. */
async function copy(to: string): Promise<CopyReport> {
  const nap = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  try {
    const source = readerOf(path);
    const progress = () => void Atomics.wait(nap, 0, 0, STEP_PAUSE_MS);
    await backup(source, to, { rate: STEP_PAGES, progress });
    source.close();
    const copied = new DatabaseSync(to);
    copied.exec('PRAGMA journal_mode = DELETE');
    const result = findDamage(copied) === undefined ? 'whole' : 'damaged';
    copied.close();
    return { result };
  } catch (error) {
    return { errcode: error instanceof Error && 'errcode' in error ? Number(error.errcode) : 1 };
  }
}
