// What came of a call: what is recorded of it, apart from when and by whom it was made.

import type { ToolEntry } from '../core/transcript.ts';

export type CallReport = Pick<
  ToolEntry,
  'status' | 'text' | 'whole' | 'failure' | 'isBlocked' | 'isForeign' | 'media'
>;
