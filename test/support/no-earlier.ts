// A conversation in which nothing was said before.

import type { ReadEarlierDeps } from '../../src/tools/read-earlier.ts';

export const NO_EARLIER: ReadEarlierDeps['sessions'] = {
  earlier: async () => ({ turns: [], hasOlder: false }),
};
