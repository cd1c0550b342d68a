// What came of a call: what is recorded of it, apart from when and by whom it was made.

import type { ToolEntry } from '../kernel/message/transcript.ts';

export type CallReport = Pick<
  ToolEntry,
  'status' | 'text' | 'whole' | 'failure' | 'isBlocked' | 'isForeign' | 'media'
> & {
  /** It waits for an approval: shown while the turn runs, recorded as not run. */
  readonly isWaiting?: boolean;
};
