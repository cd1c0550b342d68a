// Extracts recorded turns from a conversation, and compares a replay with its record: calls,
// answers and usage.

import {
  type ConversationCost,
  conversationCost,
} from '../../../features/spending/rules/conversation-cost.ts';
import { messageId, type TurnId } from '../../../kernel/message/ids.ts';
import type {
  AssistantEntry,
  ToolEntry,
  TranscriptEntry,
  UserEntry,
} from '../../../kernel/message/transcript.ts';
import { turnOf, windowOf } from '../../../kernel/sessions/rules/carry.ts';
import { canonicalJson } from '../../../lib/json/json.ts';
import { type DiffLine, lineDiff } from '../../../lib/text/cut.ts';
import type { ConfiguredPrice } from '../../../providers/rules/model-names.ts';

export type RecordedTurn = {
  readonly id: TurnId;
  /** Its position in the conversation, counted from 1. */
  readonly place: number;
  /** What the model was shown of the earlier conversation; computed on demand. */
  before(): readonly TranscriptEntry[];
  /** The messages that started the turn. */
  readonly asked: readonly UserEntry[];
  /** Messages that arrived during the turn, with the number of model answers before each. */
  readonly steered: readonly { readonly after: number; readonly entry: UserEntry }[];
  readonly answers: readonly AssistantEntry[];
  readonly results: readonly ToolEntry[];
  readonly end: Extract<TranscriptEntry, { readonly role: 'turn_end' }> | undefined;
};

export function recordedTurns(entries: readonly TranscriptEntry[]): readonly RecordedTurn[] {
  const starts = new Map<TurnId, number>();
  for (const [at, entry] of entries.entries()) {
    const id = turnOf(entry);
    if (id !== undefined && !starts.has(id)) starts.set(id, at);
  }
  const owns = Map.groupBy(entries, turnOf);
  return [...starts].map(([id, start], index) => ({
    ...partsOf(id, owns.get(id) ?? []),
    id,
    place: index + 1,
    before: () => windowOf(entries.slice(0, start)),
  }));
}

function partsOf(id: TurnId, own: readonly TranscriptEntry[]) {
  const users: { readonly entry: UserEntry; readonly after: number }[] = [];
  const answers: AssistantEntry[] = [];
  for (const entry of own) {
    if (entry.role === 'user') users.push({ entry, after: answers.length });
    if (entry.role === 'assistant') answers.push(entry);
  }
  return {
    answers,
    asked: users
      .filter(({ after }) => after === 0)
      .map(({ entry }, at) => ({ messageId: messageId(`${id}/asked/${at}`), ...entry })),
    steered: users.filter(({ after }) => after > 0),
    results: own.filter((entry) => entry.role === 'tool'),
    end: own.find((entry) => entry.role === 'turn_end'),
  };
}

/** Why a replay cannot reach the same end; undefined where it can. */
export function unrepeatable({ asked, answers, end }: RecordedTurn): string | undefined {
  if (asked.length === 0) return 'the record has no messages of this turn';
  if (end === undefined) return 'the record has no end of this turn';
  if (end.outcome !== 'answered') return `the turn was ${end.outcome}`;
  return answers.length === 0 ? 'the record has no answers of the model' : undefined;
}

/** The comparable properties of a turn. */
export type TurnOutline = {
  readonly outcome: 'answered' | 'stopped' | 'failed' | 'unfinished';
  readonly models: readonly string[];
  /** One line per call: name and arguments. */
  readonly calls: readonly string[];
  /** Number of model answers, including those with calls. */
  readonly rounds: number;
  readonly answers: readonly string[];
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cost: ConversationCost;
};

export type Pricing = {
  readonly prices: readonly ConfiguredPrice[];
  readonly currency: string;
};

export function outlineOf(
  { answers, end }: Pick<RecordedTurn, 'answers' | 'end'>,
  { prices, currency }: Pricing,
): TurnOutline {
  const usages = answers.flatMap(({ usage }) => usage ?? []);
  return {
    outcome: end?.outcome ?? 'unfinished',
    models: [...new Set(answers.map(({ model }) => model))],
    calls: answers.flatMap(({ toolCalls }) =>
      toolCalls.map((call) => `${call.name} ${canonicalJson(call.arguments)}`),
    ),
    rounds: answers.length,
    answers: end?.answers ?? [],
    inputTokens: usages.reduce((sum, usage) => sum + usage.inputTokens, 0),
    outputTokens: usages.reduce((sum, usage) => sum + usage.outputTokens, 0),
    cost: conversationCost(answers, prices, currency),
  };
}

export type TurnComparison = {
  readonly isSame: boolean;
  readonly calls: readonly DiffLine[];
  readonly answer: readonly DiffLine[];
};

/** Same: the same calls in the same order, the same answers, the same end. */
export function compareTurns(recorded: TurnOutline, played: TurnOutline): TurnComparison {
  const linesOf = ({ answers }: TurnOutline) =>
    answers.length === 0 ? [] : answers.join('\n\n').split('\n');
  const calls = lineDiff(recorded.calls, played.calls);
  const answer = lineDiff(linesOf(recorded), linesOf(played));
  const isSame =
    recorded.outcome === played.outcome &&
    [...calls, ...answer].every(({ kind }) => kind === 'same');
  return { isSame, calls, answer };
}
