// Records a decision or text of a model other than the main one as if it were the main model's, so
// that the rest of the turn treats both alike.

import { roundsOf, tokensSpent } from '../../agent/rules/turn-closing.ts';
import type { SignalOf } from '../../agent/rules/turn-state.ts';
import { askedOther, hasEffects } from '../../agent/take-answer.ts';
import type { TurnContext } from '../../agent/turn-context.ts';
import { type CallId, callId } from '../../kernel/message/ids.ts';
import type { AgentEvent } from '../../kernel/message/message.ts';
import type { AssistantEntry, ToolCall, TranscriptEntry } from '../../kernel/message/transcript.ts';
import { resultIdOf } from '../../kernel/sessions/rules/earlier.ts';
import type { Answer, Cue, CueCall, Main, Speaker } from './mode.ts';

const CUED = 'cue_';

type Decided = Extract<SignalOf<'routing'>, { readonly type: 'decided' | 'spoken' }>;

export async function* recordCue(
  turn: TurnContext,
  cue: Exclude<Cue, Main>,
): AsyncGenerator<AgentEvent, Decided, void> {
  const { usage, model } = cue.by;
  const used = usage === undefined ? {} : { usage };
  if (cue.kind === 'answer') {
    // Without a text the turn simply ends, e.g. after a question to the person.
    if (cue.text === '') return { type: 'spoken', tokens: 0 };
    const entry = await record(turn, cue.by, cue.text, []);
    yield { type: 'text_delta', text: cue.text };
    yield { type: 'model_called', model, calls: 0, ...used };
    return { type: 'spoken', tokens: tokensSpent([entry]) };
  }
  const [first, ...rest] = cue.calls;
  const calls = [
    named(turn, first, 0),
    ...rest.map((call, at) => named(turn, call, at + 1)),
  ] as const;
  const entry = await record(turn, cue.by, '', calls);
  yield { type: 'model_called', model, calls: calls.length, ...used };
  return { type: 'decided', calls, tokens: tokensSpent([entry]) };
}

async function record(
  turn: TurnContext,
  { model, usage }: Speaker,
  text: string,
  toolCalls: readonly ToolCall[],
): Promise<AssistantEntry> {
  const entry: AssistantEntry = {
    role: 'assistant',
    turnId: turn.input.turnId,
    text,
    toolCalls,
    thinking: [],
    model,
    throughSeq: turn.thread.throughSeq,
    at: turn.clock.now(),
    ...(usage === undefined ? {} : { usage }),
    ...askedOther(turn, model),
  };
  turn.shared.recorded(model, usage);
  await turn.thread.record([entry], { durable: hasEffects(turn, toolCalls) });
  return entry;
}

function named(turn: TurnContext, call: CueCall, at: number): ToolCall {
  return { id: cuedCallId(turn, at), ...call };
}

/**
 * Derived from the position of the call in its turn, so it is the same on every retry. `at`: the
 * index among the calls decided now.
 */
function cuedCallId({ input, thread }: TurnContext, at: number): CallId {
  const ordinal = thread.rounds.flat().length + at;
  const place = resultIdOf(input.turnId, ordinal) ?? `r0.${ordinal + 1}`;
  return callId(`${CUED}${place.replace('.', '_')}`);
}

/** What was done since the person's last message, which needs a new decision. */
export function sinceAsked(own: readonly TranscriptEntry[]) {
  const since = own.slice(own.findLastIndex(({ role }) => role === 'user') + 1);
  const called = since.flatMap((entry) =>
    entry.role === 'assistant' && entry.toolCalls.length > 0 ? [entry] : [],
  );
  const isCued = ({ id }: ToolCall) => id.startsWith(CUED);
  const result = roundsOf(since).at(-1)?.at(-1)?.result;
  const isAsked = result?.name === 'ask_user' && result.status === 'ok';
  const by = { model: called.at(-1)?.model ?? '' };
  const afterQuestion: Answer | undefined = isAsked ? { kind: 'answer', by, text: '' } : undefined;
  return {
    called,
    by,
    /** Of the last call. */
    result,
    /** The main model decided calls itself. */
    isMainAtWork: called.some(({ toolCalls }) => !toolCalls.every(isCued)),
    /** The turn ends: the person was asked. */
    afterQuestion,
  };
}
