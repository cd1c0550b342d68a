// The last words of a turn: what the person is told for each way a turn can end, after whatever the
// model wrote. What is said of a failed provider, the provider knows best.

import type { ToolCall, ToolEntry, TranscriptEntry } from '../../kernel/message/transcript.ts';
import { entryTokens } from './tokens.ts';
import type { Ending, TurnLimit, TurnLimits } from './turn-state.ts';

export type Closing = {
  readonly outcome: 'answered' | 'stopped' | 'failed';
  readonly answers: readonly string[];
};

const MS_PER_MINUTE = 60_000;

/**
 * `written` holds the texts the model wrote for the person in this turn, oldest first; `notices`, how they came
 * about.
 */
export function closingOf(
  ending: Ending,
  written: readonly string[],
  limits: TurnLimits,
  notices: readonly string[] = [],
): Closing {
  const note = noteOf(ending, limits);
  const texts = [...written.map(withoutBlankEdges), ...(note === undefined ? [] : [note])];
  const parts = texts.filter((part) => part !== '');
  const below = parts.length === 0 ? [] : notices.map((notice) => `[${notice}]`);
  const text = [...parts, ...below].join('\n\n');
  return { outcome: outcomeOf(ending), answers: text === '' ? [] : [text] };
}

/** The indent of the first line stays. */
function withoutBlankEdges(text: string): string {
  return text.replace(/^(?:[^\S\n]*\n)+/, '').trimEnd();
}

function outcomeOf(ending: Ending): Closing['outcome'] {
  switch (ending.kind) {
    case 'answered':
    case 'refused':
      return 'answered';
    case 'stopped':
      return 'stopped';
    case 'empty':
    case 'limit':
    case 'failed':
      return 'failed';
  }
}

function noteOf(ending: Ending, limits: TurnLimits): string | undefined {
  switch (ending.kind) {
    case 'answered':
      return ending.cut ? '[Cut at the length limit. Write "continue" for the rest.]' : undefined;
    case 'stopped':
      return undefined;
    case 'empty':
      return 'The model gave no answer, also when asked again. Please put it in other words.';
    case 'refused':
      return 'The model declined to answer this.';
    case 'limit':
      return limitNote(ending.limit, limits);
    case 'failed':
      return ending.text;
  }
}

function limitNote(limit: TurnLimit, limits: TurnLimits): string {
  switch (limit) {
    case 'rounds':
      return `[Stopped after ${limits.maxRounds} rounds of tool use, the limit of one answer. Write "continue" to go on.]`;
    case 'tokens':
      return `[Stopped at ${limits.maxTokens.toLocaleString('en-US')} tokens, the limit of one answer. Write "continue" to go on.]`;
    case 'loop':
      return '[Stopped: the same steps came again and again and brought nothing new. Put it in other words, or write "continue" to go on.]';
    case 'time':
      return `[Stopped after ${durationText(limits.maxMs)}, the time limit of one answer. Write "continue" to go on.]`;
  }
}

function durationText(ms: number): string {
  if (ms < MS_PER_MINUTE) return `${Math.round(ms / 1000)} seconds`;
  const minutes = Math.round(ms / MS_PER_MINUTE);
  return minutes === 1 ? '1 minute' : `${minutes} minutes`;
}

// The calls of a turn by the answer that made them, each with what came of it.

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
