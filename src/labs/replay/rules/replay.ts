// Extracts recorded turns from a conversation, and compares a replay with its record: calls,
// answers and usage.

import { conversationCost } from '../../../features/spending/rules/conversation-cost.ts';
import { messageId, type TurnId } from '../../../kernel/message/ids.ts';
import type {
  AssistantEntry,
  TranscriptEntry,
  UserEntry,
} from '../../../kernel/message/transcript.ts';
import { turnOf, windowOf } from '../../../kernel/sessions/rules/carry.ts';
import { canonicalJson } from '../../../lib/json/json.ts';
import { lineDiff } from '../../../lib/text/cut.ts';
import type { ConfiguredPrice } from '../../../providers/rules/model-names.ts';

export type RecordedTurn = ReturnType<typeof recordedTurns>[number];

export function recordedTurns(entries: readonly TranscriptEntry[]) {
  const starts = new Map<TurnId, number>();
  for (const [at, entry] of entries.entries()) {
    const id = turnOf(entry);
    if (id !== undefined && !starts.has(id)) starts.set(id, at);
  }
  const owns = Map.groupBy(entries, turnOf);
  return [...starts].map(([id, start], index) => ({
    ...partsOf(id, owns.get(id) ?? []),
    id,
    /** Its position in the conversation, counted from 1. */
    place: index + 1,
    /** What the model was shown of the earlier conversation; computed on demand. */
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
    /** The messages that started the turn. */
    asked: users
      .filter(({ after }) => after === 0)
      .map(({ entry }, at) => ({ messageId: messageId(`${id}/asked/${at}`), ...entry })),
    /** Messages that arrived during the turn, with the number of model answers before each. */
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
export type TurnOutline = ReturnType<typeof outlineOf>;

export type Pricing = {
  readonly prices: readonly ConfiguredPrice[];
  readonly currency: string;
};

export function outlineOf(
  { answers, end }: Pick<RecordedTurn, 'answers' | 'end'>,
  { prices, currency }: Pricing,
) {
  const usages = answers.flatMap(({ usage }) => usage ?? []);
  return {
    outcome: end?.outcome ?? ('unfinished' as const),
    models: [...new Set(answers.map(({ model }) => model))],
    /** One line per call: name and arguments. */
    calls: answers.flatMap(({ toolCalls }) =>
      toolCalls.map((call) => `${call.name} ${canonicalJson(call.arguments)}`),
    ),
    /** Number of model answers, including those with calls. */
    rounds: answers.length,
    answers: end?.answers ?? [],
    inputTokens: usages.reduce((sum, usage) => sum + usage.inputTokens, 0),
    outputTokens: usages.reduce((sum, usage) => sum + usage.outputTokens, 0),
    cost: conversationCost(answers, prices, currency),
  };
}

export type TurnComparison = ReturnType<typeof compareTurns>;

/** Same: the same calls in the same order, the same answers, the same end. */
export function compareTurns(recorded: TurnOutline, played: TurnOutline) {
  const linesOf = ({ answers }: TurnOutline) =>
    answers.length === 0 ? [] : answers.join('\n\n').split('\n');
  const calls = lineDiff(recorded.calls, played.calls);
  const answer = lineDiff(linesOf(recorded), linesOf(played));
  const isSame =
    recorded.outcome === played.outcome &&
    [...calls, ...answer].every(({ kind }) => kind === 'same');
  return { isSame, calls, answer };
}
