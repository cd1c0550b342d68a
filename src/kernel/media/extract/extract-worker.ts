// The thread that reads one document and then ends. It has no environment and makes no network
// requests.

import { parentPort } from 'node:worker_threads';
import { readDocument } from './read-document.ts';

const port = parentPort;
port?.once('message', (content: Uint8Array) => {
  void readDocument(content).then((reading) => port.postMessage(reading));
});
