// Buffers lie outside the heap, and V8 looks for dead ones only after 32 MB of them: as much as a large
// mail leaves behind in each thread it passes through. So they are cleared away as it passes.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { readonly type: 'minor' }) => void;

const CLEAR_EVERY_BYTES = 2 * 1024 * 1024;

/** Counts what passes, and clears away the young dead every few megabytes: some milliseconds each time. */
export function createSweeper(): { passed(bytes: number): void } {
  let unswept = 0;
  let collect: Collect | undefined;
  return {
    passed(bytes) {
      unswept += bytes;
      if (unswept < CLEAR_EVERY_BYTES) return;
      unswept = 0;
      collect ??= collector();
      collect({ type: 'minor' });
    },
  };
}

/** The collector counts as a function of contexts made after the flag is set. */
function collector(): Collect {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc');
}
