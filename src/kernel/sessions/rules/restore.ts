// What `/new` and `/undo` took out of a conversation's view, and the view with it brought back. Which
// files hold it is left to sessions/.

import {
  areApart,
  inOrder,
  nodesOf,
  textOfNodes,
} from '../../../agent/rules/summary-nodes-text.ts';
import { type MessageId, type TurnId, turnId } from '../../message/ids.ts';
import type { RestoreEntry, SummaryEntry, TranscriptEntry } from '../../message/transcript.ts';
import { turnOf, windowOf } from './carry.ts';

/** Something that can be brought back. */
export type RestorePoint = {
  /** As a `restore` entry names it. */
  readonly id: string;
  readonly kind: 'new' | 'undo';
  /** When it was taken out, epoch milliseconds. */
  readonly at: number;
  /** The first words of a person in it. */
  readonly text: string;
  readonly messages: number;
};

/** A point with what it brings back. */
export type HeldPoint = RestorePoint & { readonly entries: readonly TranscriptEntry[] };

export const resetPoint = (at: number) => `new:${at}`;
export const undoPoint = (turnId: TurnId, by: MessageId) => `undo:${turnId} ${by}`;

/** The turn that `/undo` had taken out; undefined where a whole conversation was brought back. */
export function turnBrought(brings: string): TurnId | undefined {
  const [, turn] = /^undo:(.+?#\d+) /.exec(brings) ?? [];
  return turn === undefined ? undefined : turnId(turn);
}

/** What the entries of one file took out of view, oldest first; `carried` is what the file opens with. */
export function pointsIn(
  carried: readonly TranscriptEntry[],
  own: readonly TranscriptEntry[],
): readonly HeldPoint[] {
  return own.flatMap((entry, index): readonly HeldPoint[] => {
    if (entry.role !== 'reset' && entry.role !== 'undo') return [];
    const before = windowOf([...carried, ...own.slice(0, index)]);
    const isReset = entry.role === 'reset';
    const entries = before.filter((one) =>
      isReset ? isWord(one) : turnOf(one) === entry.undoes && isWord(one),
    );
    const said = entries.filter(({ role }) => role === 'user' || role === 'assistant');
    const first = said[0] ?? entries.find(({ role }) => role === 'summary');
    if (first === undefined) return [];
    const id = isReset ? resetPoint(entry.at) : undoPoint(entry.undoes, entry.by);
    const kind = isReset ? 'new' : 'undo';
    const text = 'text' in first ? first.text : '';
    return [{ id, kind, at: entry.at, text, messages: said.length, entries }];
  });
}

const isWord = ({ role }: TranscriptEntry) =>
  role === 'user' || role === 'assistant' || role === 'tool' || role === 'summary';

/** The view with the point's entries where they were said, and the mark that they are back. */
export function withRestored(
  window: readonly TranscriptEntry[],
  { id, entries, at }: HeldPoint,
  by: MessageId,
  now: number,
): readonly TranscriptEntry[] {
  const mark: RestoreEntry = { role: 'restore', brings: id, by, at: now };
  const summaries = [...entries, ...window].filter((entry) => entry.role === 'summary');
  const told = entries.filter(({ role }) => role !== 'summary');
  const back = new Set(told.map(turnOf));
  const rest = window.filter((entry) => {
    if (entry.role === 'undo') return !back.has(entry.undoes);
    return entry.role !== 'summary';
  });
  const place = rest.findIndex((entry) => entry.at > at);
  const all = rest.toSpliced(place < 0 ? rest.length : place, 0, ...told);
  return [...joined(summaries), ...all, mark];
}

/** Nodes stay apart; what none of them knows the turns of is one text. */
function textsOf(summaries: readonly SummaryEntry[]): Pick<SummaryEntry, 'text' | 'nodes'> {
  const nodes = inOrder(summaries.flatMap((one) => nodesOf(one, 0)));
  const isOfNodes = summaries.some((one) => one.nodes !== undefined) && areApart(nodes);
  const isWhole = summaries.every((one) => one.text.trim() === '' || nodesOf(one, 0).length > 0);
  if (isOfNodes && isWhole) return { text: textOfNodes(nodes), nodes };
  return { text: summaries.map(({ text }) => text).join('\n\n') };
}

/** Only one summary is ever in view. */
function joined(summaries: readonly SummaryEntry[]): readonly SummaryEntry[] {
  const [first, ...rest] = summaries;
  if (first === undefined || rest.length === 0) return summaries;
  const omitted = summaries.reduce((sum, one) => sum + (one.omitted ?? 0), 0);
  const media = summaries.flatMap((one) => one.media ?? []);
  const { keepsFrom: _, nodes: __, ...head } = first;
  return [
    {
      ...head,
      ...textsOf(summaries),
      ...(omitted === 0 ? {} : { omitted }),
      ...(media.length === 0 ? {} : { media }),
      ...(summaries.some(({ isForeign }) => isForeign) ? { isForeign: true as const } : {}),
    },
  ];
}
