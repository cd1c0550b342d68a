// Puts an endless content into the media store until it is killed; tells its parent when it writes.

import { openMediaFiles } from '../../src/kernel/media/files.ts';
import { systemClock } from '../../src/lib/time/clock.ts';

const { MEDIA_FOLDER = '' } = process.env;
const store = await openMediaFiles({
  folder: MEDIA_FOLDER,
  clock: systemClock,
  maxBytes: () => Number.MAX_SAFE_INTEGER,
  needed: async () => new Set(),
});

async function* endless() {
  for (let written = 0; ; written += 1) {
    yield Buffer.alloc(10_000, 'x');
    if (written === 10) process.send?.('writing');
  }
}

await store.put(endless(), { maxBytes: Number.MAX_SAFE_INTEGER });
