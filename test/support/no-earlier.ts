// A conversation in which nothing was said before.

import type { ExpandDeps, PastSessions } from '../../src/tools/read-back.ts';

export const NO_EARLIER: ExpandDeps['sessions'] = {
  load: async () => [],
  earlier: async () => ({ turns: [], hasOlder: false }),
};

export const NO_PAST: PastSessions = { find: async () => [], read: async () => undefined };
