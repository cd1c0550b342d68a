// Programs that tests start again and again keep what they compiled, in a folder of all of them: their
// own homes are new each time.

import { fileURLToPath } from 'node:url';

/** @see https://nodejs.org/api/cli.html#node_compile_cachedir */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE: fileURLToPath(
    new URL('../../node_modules/.cache/nanobot-tests', import.meta.url),
  ),
} as const;
