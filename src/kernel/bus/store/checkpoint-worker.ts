// The thread that copies the write-ahead log into the file: most of it while commits go on; the
// rest, and the start of a new log, once it is told that no commit is running.

import { parentPort, workerData } from 'node:worker_threads';
import { openForCheckpoint, renewLog } from './database.ts';

const port = parentPort;
const path = String(workerData);
const reader = openForCheckpoint(path);
const database = openForCheckpoint(path);
// A reader keeps others from restarting the log, for which their commit would wait for the disk.
reader.exec('BEGIN');
reader.prepare('SELECT count(*) FROM sqlite_schema').get();
database.exec('PRAGMA wal_checkpoint(PASSIVE)');
port?.once('message', () => {
  reader.close();
  renewLog(database);
  database.close();
});
port?.postMessage('copied');
