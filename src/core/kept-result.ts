// Results of tools that can be read again: how each is named, and the difference between what the
// model was shown of one and what is kept of it.

import { type ResultId, resultId, type TurnId } from './ids.ts';
import type { TranscriptEntry } from './transcript.ts';
import { firstSeqOf } from './turn-id.ts';

const SHAPE = /^r\d{1,16}\.\d{1,9}$/;

/**
 * `r12.3`: third call of the turn that began with message 12, so the same on every retry. `ordinal`
 * counts the calls of the turn from 0. Undefined for a turn without a number.
 */
export function resultIdOf(turn: TurnId, ordinal: number): ResultId | undefined {
  const first = firstSeqOf(turn);
  return first === undefined ? undefined : resultId(`r${first}.${ordinal + 1}`);
}

/** As a model writes it; undefined where it names no result. */
export function parseResultId(text: string): ResultId | undefined {
  const plain = text.trim().toLowerCase();
  return SHAPE.test(plain) ? resultId(plain) : undefined;
}

/** Number of the turn that it belongs to. */
export const turnOfResult = (id: ResultId) => Number(/\d+/.exec(id)?.[0] ?? 0);

/** What is kept in memory of an entry: the whole of a long result stays on the disk. */
export function withoutWhole(entry: TranscriptEntry): TranscriptEntry {
  if (entry.role !== 'tool' || entry.whole === undefined) return entry;
  const { whole: _, ...light } = entry;
  return light;
}
