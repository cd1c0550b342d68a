// What of a conversation is in view, when a new file begins and what it opens with. Reading and
// writing the files is left to sessions/.

import { withNodes, withTurnsBefore } from '../../../agent/rules/summary-nodes-text.ts';
import { firstSeqOf, type TurnId, turnId } from '../../message/ids.ts';
import type { SummaryEntry, TranscriptEntry } from '../../message/transcript.ts';

/** The `sessions` part of the configuration. */
export type SessionPolicy = {
  readonly rotationSizeBytes: number;
  readonly rotationTokens: number;
  readonly carry: 'recent' | 'nothing';
  readonly rotationCarryMessages: number;
  /** IANA zone whose midnight starts a new file; empty = the machine's. */
  readonly timeZone: string;
};

/** What a file gained since it was opened; what it opened with does not count. */
export type Growth = { readonly bytes: number; readonly tokens: number };

/** Bytes of JSON that make a token, on the small side so that files end early rather than late. */
const BYTES_PER_TOKEN = 4;

export const tokensOfBytes = (bytes: number) => Math.ceil(bytes / BYTES_PER_TOKEN);

export function turnOf(entry: TranscriptEntry): TurnId | undefined {
  return 'turnId' in entry ? entry.turnId : undefined;
}

/** Whether the entry replaces all before it in the view of the model. */
function opensWindow(entry: TranscriptEntry): boolean {
  return entry.role === 'reset' || entry.role === 'summary';
}

/** Whether the entry changes what was in view before it. */
export function changesWindow(entry: TranscriptEntry): boolean {
  return opensWindow(entry) || entry.role === 'undo';
}

/**
 * What is shown after the last `reset`: the last `summary`, then all that it does not cover, without
 * what was taken back.
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

/** A summary is made while the conversation goes on: what it leaves as it is stands before it. */
function keptBefore({ keepsFrom }: SummaryEntry, before: readonly TranscriptEntry[]) {
  if (keepsFrom === undefined) return [];
  const sinceReset = before.slice(before.findLastIndex(({ role }) => role === 'reset') + 1);
  const from = sinceReset.findIndex((entry) => turnOf(entry) === keepsFrom);
  return from < 0 ? [] : sinceReset.slice(from).filter(({ role }) => role !== 'summary');
}

/** A file changes between turns only: where a person speaks in a turn it does not know yet. */
export function startsTurn(entry: TranscriptEntry, isKnown: (id: TurnId) => boolean): boolean {
  if (entry.role === 'reset') return true;
  return entry.role === 'user' && !isKnown(entry.turnId);
}

/** `fileDay` and `today` as `YYYY-MM-DD`; a clock that went back does not open an older file. */
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
 * What a new file opens with: the running summary and the last messages of the window. A tool
 * result keeps the call it answers, also where that takes more messages than asked for.
 */
export function carryOver(
  window: readonly TranscriptEntry[],
  policy: Pick<SessionPolicy, 'carry' | 'rotationCarryMessages'>,
): readonly TranscriptEntry[] {
  // The turn that took the last one back may have to be tried again, and finds here that it did.
  const undone = window.slice(-1).filter(({ role }) => role === 'undo');
  if (policy.carry === 'nothing') return undone;
  const summary = window.findLast((entry) => entry.role === 'summary');
  const messages = window.filter(isMessage);
  let start = Math.max(0, messages.length - policy.rotationCarryMessages);
  while (start > 0 && start < messages.length && messages[start]?.role === 'tool') start -= 1;
  return [
    ...carriedSummary(summary, messages.slice(0, start)),
    ...withEnds(messages.slice(start), window),
    ...undone,
  ];
}

function isMessage({ role }: TranscriptEntry): boolean {
  return role === 'user' || role === 'assistant' || role === 'tool';
}

/** Where the model never answered, only the turn's end tells that its messages were taken up. */
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

/** It says how much stands neither in it nor behind it. */
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
