// The end of an answer: the text for each way a turn can end, added to what the model wrote. The
// text for a failed provider comes from the provider.

import type { MessageId, TurnId } from '../../kernel/message/ids.ts';
import type {
  AssistantEntry,
  ToolCall,
  ToolEntry,
  TranscriptEntry,
  TurnEndEntry,
  UserEntry,
} from '../../kernel/message/transcript.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import { entryTokens } from './tokens.ts';
import type { Ending, TurnLimit, TurnLimits } from './turn-state.ts';

export type Closing = Pick<TurnEndEntry, 'outcome' | 'answers'>;

const MS_PER_MINUTE = 60_000;

/**
 * `written`: the texts for the person in this turn, oldest first; `notices`: how they came about.
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
  return { outcome: OUTCOMES[ending.kind], answers: text === '' ? [] : [text] };
}

/** Keeps the indent of the first line. */
function withoutBlankEdges(text: string): string {
  return text.replace(/^(?:[^\S\n]*\n)+/, '').trimEnd();
}

const OUTCOMES: Readonly<Record<Ending['kind'], Closing['outcome']>> = {
  ...{ answered: 'answered', refused: 'answered', stopped: 'stopped' },
  ...{ empty: 'failed', limit: 'failed', failed: 'failed' },
};

function noteOf(ending: Ending, limits: TurnLimits): string | undefined {
  switch (ending.kind) {
    case 'answered':
      return ending.cut ? '[Cut at the length limit. Write "continue" for the rest.]' : undefined;
    case 'stopped':
      return undefined;
    case 'empty':
      return t`The model gave no answer, even when asked again. Please rephrase your message.`;
    case 'refused':
      return t`The model declined to answer this.`;
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
      return '[Stopped: the same steps repeated without progress. Rephrase your message, or write "continue" to go on.]';
    case 'time':
      return `[Stopped after ${durationText(limits.maxMs)}, the time limit of one answer. Write "continue" to go on.]`;
  }
}

function durationText(ms: number): string {
  if (ms < MS_PER_MINUTE) return t`${Math.round(ms / 1000)} seconds`;
  const minutes = Math.round(ms / MS_PER_MINUTE);
  return ngettext(msgid`${minutes} minute`, `${minutes} minutes`, minutes);
}

// The calls of a turn grouped by the answer that made them, each with its result.

type RecordedCall = { readonly call: ToolCall; readonly result: ToolEntry | undefined };
export type Round = readonly RecordedCall[];

/** The recorded part of a call's result, without time and turn. */
export type CallReport = Pick<
  ToolEntry,
  'status' | 'text' | 'whole' | 'failure' | 'isBlocked' | 'isForeign' | 'media'
> & {
  /** Waits for an approval: shown while the turn runs, recorded as not run. */
  readonly isWaiting?: boolean;
};

/** `own`: the entries of one turn. Call ids are unique within one answer only. */
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

/** Whether every call of the round was blocked. */
export function isBlockedRound(round: Round): boolean {
  return round.length > 0 && round.every(({ result }) => result?.isBlocked === true);
}

/** Number of newest consecutive rounds in which every call was blocked. */
export function blockedRounds(rounds: readonly Round[]): number {
  return rounds.length - 1 - rounds.findLastIndex((round) => !isBlockedRound(round));
}

// The texts that a turn wrote for the person.

/**
 * Oldest first; `last` is not recorded yet. Drafts count only if there is no other text, and an
 * answer with unsupported claims only if its correction gave none.
 */
export function writtenTexts(
  answers: readonly AssistantEntry[],
  last: string | undefined,
): readonly string[] {
  const texts = answers.filter(({ text }) => text.trim() !== '');
  const newest =
    last === undefined ? texts.findLastIndex((each) => each.isDraft !== true) : texts.length;
  const isMeant = ({ isDraft, unsupported }: AssistantEntry, place: number) =>
    isDraft !== true || (unsupported !== undefined && place > newest);
  const meant = [
    ...texts.filter(isMeant).map(({ text }) => text),
    ...(last === undefined ? [] : [last]),
  ];
  return meant.length > 0 ? meant : texts.map(({ text }) => text);
}

/**
 * The kind of the newest entry, where it is an answer without calls. `answer`: only the end was not
 * recorded; `draft`: the answer is still to be written.
 */
export function lastWordOf(
  own: readonly TranscriptEntry[],
): 'answer' | 'draft' | { readonly unsupported: readonly string[] } | undefined {
  const last = own.at(-1);
  if (last?.role !== 'assistant' || last.toolCalls.length > 0) return undefined;
  const { unsupported } = last;
  if (unsupported !== undefined) return { unsupported };
  return last.isDraft === true ? 'draft' : 'answer';
}

// The entries of a transcript that a turn gets. A message that is recorded more than once, because
// a process died before its turn ended, appears only where it is answered.

/**
 * Highest sequence number that the model got in a turn, derived from its answers; 0 without an
 * answer. An answer covers every message it was sent with, so these are never asked again.
 */
export function shownThrough(own: readonly TranscriptEntry[]): number {
  const shown = own.map((entry) => (entry.role === 'assistant' ? (entry.throughSeq ?? 0) : 0));
  return Math.max(0, ...shown);
}

/**
 * A conversation without messages that no turn answered: they were recorded, but the process died
 * before the model answered. The message bus gives them to another turn, or has set them aside. An
 * entry without a sequence number is of an earlier version, and kept.
 */
export function takenUp(window: readonly TranscriptEntry[]): readonly TranscriptEntry[] {
  const through = new Map<TurnId, number>();
  for (const entry of window) {
    if (!('throughSeq' in entry) || entry.throughSeq === undefined) continue;
    through.set(entry.turnId, Math.max(entry.throughSeq, through.get(entry.turnId) ?? 0));
  }
  return window.filter(
    (entry) =>
      entry.role !== 'user' ||
      entry.messageId === undefined ||
      entry.seq === undefined ||
      entry.seq <= (through.get(entry.turnId) ?? 0),
  );
}

/** Whether `window` is `earlier` with entries of the turn after it. */
export function isGrownBy(
  turnId: TurnId,
  earlier: readonly TranscriptEntry[],
  window: readonly TranscriptEntry[],
): boolean {
  const isOwn = (entry: TranscriptEntry) => 'turnId' in entry && entry.turnId === turnId;
  return (
    earlier.every((entry, nth) => entry === window[nth]) &&
    window.slice(earlier.length).every(isOwn)
  );
}

/**
 * `history`: the answered entries, which may include some of this turn; `own`: the recorded entries
 * of the turn, possibly with messages of an earlier attempt that are left to the next turn.
 * `asked`: the messages of this attempt.
 */
export function threadView(
  history: readonly TranscriptEntry[],
  own: readonly TranscriptEntry[],
  { turnId, asked }: { readonly turnId: TurnId; readonly asked: ReadonlySet<MessageId> },
): readonly TranscriptEntry[] {
  const through = shownThrough(own);
  const isShown = ({ seq }: UserEntry) => seq !== undefined && seq <= through;
  const seen = new Set(asked);
  const answeredLater = new Set<MessageId>();
  const before: TranscriptEntry[] = [];
  for (const entry of history.toReversed()) {
    const isOwn = 'turnId' in entry && entry.turnId === turnId;
    if (entry.role === 'user' && entry.messageId !== undefined && (!isOwn || isShown(entry))) {
      if (seen.has(entry.messageId)) continue;
      seen.add(entry.messageId);
      if (!isOwn) answeredLater.add(entry.messageId);
    }
    if (!isOwn) before.push(entry);
  }
  const isOfThisTry = (entry: TranscriptEntry) =>
    entry.role !== 'user' ||
    entry.messageId === undefined ||
    asked.has(entry.messageId) ||
    (isShown(entry) && !answeredLater.has(entry.messageId));
  return [...before.reverse(), ...own.filter(isOfThisTry)];
}
