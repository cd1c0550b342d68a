// The thread that reads pages: one hostile page at a time, so that neither time nor memory of the
// gateway depends on what a site sends.

import { parentPort } from 'node:worker_threads';
import { type FromReader, readablePage, type ToReader } from './readable-page.ts';

const port = parentPort;

port?.postMessage({ kind: 'ready' } satisfies FromReader);
port?.on('message', ({ page }: ToReader) => port.postMessage(read(page)));

function read(page: ToReader['page']): FromReader {
  try {
    return { kind: 'read', page: readablePage(page) };
  } catch {
    return { kind: 'failed', problem: 'the page is broken in a way that cannot be read' };
  }
}
