// The thread that reads one document and is gone. It has no environment and asks nothing of the net.

import { parentPort } from 'node:worker_threads';
import { readDocument } from './read-document.ts';

const port = parentPort;
port?.once('message', (content: Uint8Array) => {
  void readDocument(content).then((reading) => port.postMessage(reading));
});
