// What was said earlier in a conversation, as a model reads it again: whole turns with their numbers,
// in pieces of a bounded length. Finding them in the files is left to sessions/.

import { firstSeqOf, type ResultId, resultId, type TurnId } from '../../message/ids.ts';
import type { TranscriptEntry } from '../../message/transcript.ts';
import { isoTime } from './entry.ts';

export type EarlierQuestion = {
  /** Only turns with a smaller number, the newest of them. */
  readonly before?: number;
  /** This turn and those behind it, the oldest of them; `before` still bounds them. */
  readonly from?: number;
  /** Only turns that hold all of these words. */
  readonly words?: string;
  readonly maxTurns: number;
  /** Files of the conversation to look through at most, the newest first; left out: 100. */
  readonly maxFiles?: number;
};

export type EarlierTurn = {
  /** Its place in the conversation: numbers grow, with gaps. */
  readonly turn: number;
  readonly entries: readonly TranscriptEntry[];
};

export type EarlierTurns = {
  /** Oldest first. */
  readonly turns: readonly EarlierTurn[];
  /** Further back there may be more. */
  readonly hasOlder: boolean;
};

const WORD = /[\p{L}\p{N}]+/gu;
const FOREIGN = '[There are words of others among these.]';

export const wordsIn = (text: string): readonly string[] => text.toLowerCase().match(WORD) ?? [];

export function holdsWords(entries: readonly TranscriptEntry[], words: readonly string[]): boolean {
  const text = entries.map(lineOf).join('\n').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Whether a text by `earlierText` tells what others wrote. */
export const tellsForeign = (text: string) => text.startsWith(FOREIGN);

/** At most `maxChars` from `offset` on, a line of ours at the head included. */
export function earlierText(
  { turns, hasOlder }: EarlierTurns,
  offset: number,
  maxChars: number,
): string {
  const whole = turns.map(turnText).join('\n\n');
  const first = turns.at(0)?.turn ?? 0;
  const last = turns.at(-1)?.turn ?? 0;
  const which = first === last ? `turn ${first}` : `turns ${first} to ${last}`;
  const mark = turns.some(({ entries }) => entries.some((entry) => 'isForeign' in entry));
  const around = `${hasOlder ? `; older ones: before: ${first}` : ''}; newer ones: from: ${last + 1}`;
  const head = (range: string) =>
    `${mark ? `${FOREIGN}\n` : ''}[${which} of this conversation; ${range}${around}]\n`;
  const start = Math.min(offset, whole.length);
  const room = Math.max(
    1,
    maxChars -
      head('characters 000,000,000 to 000,000,000 of 000,000,000, go on with offset: 000000000')
        .length,
  );
  const end = Math.min(whole.length, start + room);
  const [from, to, of] = [start, end, whole.length].map((at) => at.toLocaleString('en-US'));
  const onward = end < whole.length ? `, go on with offset: ${end}` : '';
  return `${head(`characters ${from} to ${to} of ${of}${onward}`)}${whole.slice(start, end)}`;
}

function turnText({ turn, entries }: EarlierTurn): string {
  const at = isoTime(entries[0]?.at ?? 0)
    .slice(0, 16)
    .replace('T', ' ');
  const lines = entries.map(lineOf).filter((line) => line !== '');
  return [`--- turn ${turn}, ${at} UTC`, ...lines].join('\n');
}

/** One entry with who said it; empty for what is bookkeeping. */
export function lineOf(entry: TranscriptEntry): string {
  switch (entry.role) {
    case 'user':
      return `person: ${entry.text}`;
    case 'assistant': {
      const calls = entry.toolCalls.map(
        ({ name, arguments: given }) => `you called ${name} ${given}`,
      );
      return [...(entry.text.trim() === '' ? [] : [`you: ${entry.text}`]), ...calls].join('\n');
    }
    case 'tool':
      return `${entry.name} (${entry.status}): ${entry.text}`;
    case 'turn_end':
      return entry.outcome === 'answered' ? '' : `(the turn ${entry.outcome})`;
    case 'summary':
    case 'reset':
    case 'undo':
    case 'restore':
      return '';
  }
}

// Results of tools that can be read again: how each is named, and the difference between what the
// model was shown of one and what is kept of it.

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
