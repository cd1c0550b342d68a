// The calls of a turn by the answer that made them, each with what came of it.

import { entryTokens } from './tokens.ts';
import type { ToolCall, ToolEntry, TranscriptEntry } from './transcript.ts';

export type RecordedCall = { readonly call: ToolCall; readonly result: ToolEntry | undefined };
export type Round = readonly RecordedCall[];

/** `own` holds the entries of one turn. Ids of calls count within one answer only. */
export function roundsOf(own: readonly TranscriptEntry[]): readonly Round[] {
  const starts = own.flatMap((entry, index) => (hasCalls(entry) ? [index] : []));
  return starts.map((start, nth) => {
    const answer = own[start];
    if (answer?.role !== 'assistant') return [];
    const results = own.slice(start + 1, starts[nth + 1]).filter((entry) => entry.role === 'tool');
    return answer.toolCalls.map((call) => ({
      call,
      result: results.find(({ callId }) => callId === call.id),
    }));
  });
}

const hasCalls = (entry: TranscriptEntry) =>
  entry.role === 'assistant' && entry.toolCalls.length > 0;

/** Calls of the newest answer that have no result yet, in order. */
export function openCallsOf(own: readonly TranscriptEntry[]): readonly ToolCall[] {
  const newest = own.findLastIndex((entry) => entry.role === 'assistant');
  const answer = own[newest];
  if (answer?.role !== 'assistant') return [];
  const results = own.slice(newest + 1).filter((entry) => entry.role === 'tool');
  const done = new Set(results.map((entry) => entry.callId));
  return answer.toolCalls.filter((call) => !done.has(call.id));
}

/** Tokens in and out over all answers, estimated where the provider did not count. */
export function tokensSpent(own: readonly TranscriptEntry[]): number {
  let asked = 0;
  let spent = 0;
  for (const entry of own) {
    const tokens = entryTokens(entry);
    if (entry.role === 'assistant') {
      const { usage } = entry;
      spent += usage === undefined ? asked + tokens : usage.inputTokens + usage.outputTokens;
    }
    asked += tokens;
  }
  return spent;
}

/** Whether every call of a round was kept from running. */
export function isBlockedRound(round: Round): boolean {
  return round.length > 0 && round.every(({ result }) => result?.isBlocked === true);
}

/** Newest rounds in a row in which nothing was run. */
export function blockedRounds(rounds: readonly Round[]): number {
  return rounds.length - 1 - rounds.findLastIndex((round) => !isBlockedRound(round));
}
