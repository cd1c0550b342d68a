// What a turn needs to keep what its models were asked with.

import type { AskedPiece } from '../features/request-log/rules/asked.ts';
import type { AskedBook } from '../kernel/sessions/store.ts';
import type { Prints } from './prints.ts';

export type AskedNotes = {
  readonly book: AskedBook;
  readonly prints: Prints;
  /** Those settings that shape a turn, JSON. */
  readonly config: AskedPiece;
};
