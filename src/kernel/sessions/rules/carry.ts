// Which part of a conversation is in view, when a new file begins and what it opens with. sessions/
// reads and writes the files.

import {
  areApart,
  inOrder,
  joinedParts,
  nodesOf,
  showsUntrusted,
  trustedOnly,
  withNodes,
  withTurnsBefore,
} from '../../../agent/rules/context-marks.ts';
import { firstSeqOf, type MessageId, type TurnId, turnId } from '../../message/ids.ts';
import type { RestoreEntry, SummaryEntry, TranscriptEntry } from '../../message/transcript.ts';

/** The `sessions` part of the configuration. */
export type SessionPolicy = {
  readonly rotationSizeBytes: number;
  readonly rotationTokens: number;
  readonly carry: 'recent' | 'nothing';
  readonly rotationCarryMessages: number;
  /** IANA zone whose midnight starts a new file; empty = the machine's. */
  readonly timeZone: string;
};

/** What a file gained since it was opened; its opening does not count. */
export type Growth = { readonly bytes: number; readonly tokens: number };

/** Bytes of JSON per token, rather low, so that files end early rather than late. */
const BYTES_PER_TOKEN = 4;

export const tokensOfBytes = (bytes: number) => Math.ceil(bytes / BYTES_PER_TOKEN);

export function turnOf(entry: TranscriptEntry | undefined): TurnId | undefined {
  return entry !== undefined && 'turnId' in entry ? entry.turnId : undefined;
}

/** Whether the entry replaces everything before it in the view of the model. */
function opensWindow(entry: TranscriptEntry): boolean {
  return entry.role === 'reset' || entry.role === 'summary';
}

/** Whether the entry changes what was in view before it. */
export function changesWindow(entry: TranscriptEntry): boolean {
  return opensWindow(entry) || entry.role === 'undo';
}

/**
 * What is shown after the last `reset`: the last `summary`, then everything that it does not cover,
 * without what was undone.
 */
export function windowOf(entries: readonly TranscriptEntry[]): readonly TranscriptEntry[] {
  const undone = new Set(
    entries.map((entry) => (entry.role === 'undo' ? entry.undoes : undefined)),
  );
  return visible(entries).filter((entry) => {
    const turn = turnOf(entry);
    return turn === undefined || !undone.has(turn);
  });
}

function visible(entries: readonly TranscriptEntry[]): readonly TranscriptEntry[] {
  const start = entries.findLastIndex(opensWindow);
  const opening = entries[start];
  const behind = entries.slice(start + 1);
  if (opening?.role !== 'summary') return behind;
  return [opening, ...keptBefore(opening, entries.slice(0, start)), ...behind];
}

/** A summary is made while the conversation continues: the entries it keeps precede it. */
function keptBefore({ keepsFrom }: SummaryEntry, before: readonly TranscriptEntry[]) {
  if (keepsFrom === undefined) return [];
  const sinceReset = before.slice(before.findLastIndex(({ role }) => role === 'reset') + 1);
  const from = sinceReset.findIndex((entry) => turnOf(entry) === keepsFrom);
  return from < 0 ? [] : sinceReset.slice(from).filter(({ role }) => role !== 'summary');
}

/** A file changes only between turns: where a person's message starts a new turn. */
export function startsTurn(entry: TranscriptEntry, isKnown: (id: TurnId) => boolean): boolean {
  if (entry.role === 'reset') return true;
  return entry.role === 'user' && !isKnown(entry.turnId);
}

/** `fileDay` and `today` as `YYYY-MM-DD`; a clock that was set back does not open an older file. */
export function isRotationDue(
  fileDay: string,
  today: string,
  growth: Growth,
  policy: SessionPolicy,
): boolean {
  if (today > fileDay) return true;
  return growth.bytes >= policy.rotationSizeBytes || growth.tokens >= policy.rotationTokens;
}

/**
 * What a new file opens with: the current summary and the last messages of the window. A tool
 * result keeps the call it answers, even if that takes more messages than requested.
 */
export function carryOver(
  window: readonly TranscriptEntry[],
  policy: Pick<SessionPolicy, 'carry' | 'rotationCarryMessages'>,
): readonly TranscriptEntry[] {
  // The turn that did the last undo may be retried, and finds here that it did.
  const undone = window.slice(-1).filter(({ role }) => role === 'undo');
  if (policy.carry === 'nothing') return undone;
  const last = window.findLast((entry) => entry.role === 'summary');
  const messages = window.filter(isMessage);
  let start = Math.max(0, messages.length - policy.rotationCarryMessages);
  while (start > 0 && start < messages.length && messages[start]?.role === 'tool') start -= 1;
  const kept = messages.slice(start);
  // Its untrusted part goes with the untrusted content, so that a new day can begin without taint.
  const summary = last && !showsUntrusted(kept) ? trustedOnly(last) : last;
  return [
    ...carriedSummary(summary, messages.slice(0, start)),
    ...withEnds(kept, window),
    ...undone,
  ];
}

export function isMessage({ role }: TranscriptEntry): boolean {
  return role === 'user' || role === 'assistant' || role === 'tool';
}

/** If the model never answered, only the turn's end shows that its messages were processed. */
function withEnds(
  kept: readonly TranscriptEntry[],
  window: readonly TranscriptEntry[],
): readonly TranscriptEntry[] {
  const answered = new Set(kept.map((entry) => (entry.role === 'assistant' ? turnOf(entry) : '')));
  const carried = new Set(kept);
  const silent = new Set(kept.map(turnOf).filter((turn) => !answered.has(turn)));
  return window.filter(
    (entry) => carried.has(entry) || (entry.role === 'turn_end' && silent.has(entry.turnId)),
  );
}

const NO_TURN = turnId('');

/** It states how much is neither in it nor after it. */
function carriedSummary(
  summary: SummaryEntry | undefined,
  left: readonly TranscriptEntry[],
): readonly SummaryEntry[] {
  const last = left.at(-1);
  if (last === undefined) return summary === undefined ? [] : [summary];
  const before = summary ?? { role: 'summary' as const, text: '', at: last.at };
  if (before.nodes === undefined) {
    return [{ ...before, omitted: (before.omitted ?? 0) + left.length }];
  }
  const turns = left.map((entry) => firstSeqOf(turnOf(entry) ?? NO_TURN) ?? 0);
  const nodes = withTurnsBefore(before.nodes, turns);
  const behind = turns.filter((turn) => turn >= (nodes.at(-1)?.before ?? 0)).length;
  const omitted = (before.omitted ?? 0) + behind;
  return [{ ...withNodes(before, nodes), ...(omitted === 0 ? {} : { omitted }) }];
}

// What `/new` and `/undo` hid from a conversation's view, and the view with it restored. sessions/
// knows which files contain it.

/** Something that can be restored. */
export type RestorePoint = {
  /** As a `restore` entry names it. */
  readonly id: string;
  readonly kind: 'new' | 'undo';
  /** When it was hidden, epoch milliseconds. */
  readonly at: number;
  /** The first words of a person in it. */
  readonly text: string;
  readonly messages: number;
};

/** A point with the entries it restores. */
export type HeldPoint = RestorePoint & { readonly entries: readonly TranscriptEntry[] };

export const resetPoint = (at: number) => `new:${at}`;
export const undoPoint = (turnId: TurnId, by: MessageId) => `undo:${turnId} ${by}`;

/** The turn that `/undo` hid; undefined if a whole conversation was restored. */
export function turnBrought(brings: string): TurnId | undefined {
  const [, turn] = /^undo:(.+?#\d+) /.exec(brings) ?? [];
  return turn === undefined ? undefined : turnId(turn);
}

/** What the entries of one file hid, oldest first; `carried` is the file's opening. */
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

/**
 * The view with the point's entries in their original place, and the mark that they are restored.
 */
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

/** Nodes stay separate; summaries without known turns are one text. */
function textsOf(summaries: readonly SummaryEntry[]) {
  const nodes = inOrder(summaries.flatMap((one) => nodesOf(one, 0)));
  const isOfNodes = summaries.some((one) => one.nodes !== undefined) && areApart(nodes);
  const isWhole = summaries.every(
    (one) => `${one.text}${one.untrusted ?? ''}`.trim() === '' || nodesOf(one, 0).length > 0,
  );
  if (isOfNodes && isWhole) return { ...joinedParts(nodes), nodes };
  return joinedParts(summaries);
}

/** Only one summary is ever in view. */
function joined(summaries: readonly SummaryEntry[]): readonly SummaryEntry[] {
  const [first, ...rest] = summaries;
  if (first === undefined || rest.length === 0) return summaries;
  const omitted = summaries.reduce((sum, one) => sum + (one.omitted ?? 0), 0);
  const media = summaries.flatMap((one) => one.media ?? []);
  const { keepsFrom: _, nodes: __, untrusted: ___, isForeign: ____, ...head } = first;
  return [
    {
      ...head,
      ...textsOf(summaries),
      ...(omitted === 0 ? {} : { omitted }),
      ...(media.length === 0 ? {} : { media }),
    },
  ];
}
