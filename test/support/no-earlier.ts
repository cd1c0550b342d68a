// A conversation in which nothing was said before.

import type { ReadEarlierDeps } from '../../src/tools/read-earlier.ts';
import type { PastSessions } from '../../src/tools/session-search.ts';

export const NO_EARLIER: ReadEarlierDeps['sessions'] = {
  earlier: async () => ({ turns: [], hasOlder: false }),
};

export const NO_PAST: PastSessions = { find: async () => [], read: async () => undefined };
