// A conversation in which nothing was said before.

import type { ExpandDeps } from '../../src/tools/expand.ts';
import type { PastSessions } from '../../src/tools/session-search.ts';

export const NO_EARLIER: ExpandDeps['sessions'] = {
  load: async () => [],
  earlier: async () => ({ turns: [], hasOlder: false }),
};

export const NO_PAST: PastSessions = { find: async () => [], read: async () => undefined };
