// Asks a model that shares the work of a turn: once, with a deadline, charged to whoever the turn answers,
// and noted for its health. What it says is judged by whoever asked.

import { cutAnswer } from '../../agent/loop-cut.ts';
import { messagesTokens, textTokens } from '../../agent/rules/tokens.ts';
import { chargedMeter, untilAborted } from '../../agent/side-model.ts';
import { SpendingRefusedError } from '../../agent/spending.ts';
import { waitingNotice } from '../../agent/stream.ts';
import { TurnTime } from '../../agent/turn-context.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import type { ModelMessage, TokenUsage } from '../../kernel/message/transcript.ts';
import type { ModelEvent, ToolSpec } from '../../providers/provider.ts';
import { correctionNote } from '../steadiness/rules/claims.ts';
import { claimsUndone, loopWatch } from '../steadiness/steadiness.ts';
import type { ModeTurn } from './modes.ts';
import type { RoleHealth, RoleModel } from './role-health.ts';

export type RoleCall = {
  readonly system: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ToolSpec[];
  readonly toolChoice?: 'none';
  readonly maxTokens: number;
  readonly temperature: number;
  readonly timeoutMs: number;
};

export type RoleAnswer = Extract<ModelEvent, { readonly type: 'finished' }>;

class RoleLate extends Error {
  override readonly name = 'RoleLate';
}

/** `failed`: it did not answer; `isOut`: from now on it is left alone for a while. */
export type AskedRole =
  | { readonly kind: 'answered'; readonly answer: RoleAnswer }
  | { readonly kind: 'failed'; readonly isOut: boolean };

type Asked = {
  readonly health: RoleHealth;
  readonly who: RoleModel;
};

/**
 * An answer counts as none for its health until whoever asked says so. Where the conversation stays on
 * one's own machines, a model elsewhere is not there, and says nothing of its health.
 * @throws SpendingRefusedError, or the reason of the signal
 */
export async function askRole(
  turn: ModeTurn,
  { health, who }: Asked,
  call: RoleCall,
  signal: AbortSignal,
): Promise<AskedRole> {
  const late = new AbortController();
  const time = new TurnTime(turn.clock);
  const deadline = time.limit(call.timeoutMs, () => late.abort(new RoleLate()));
  try {
    const either = AbortSignal.any([signal, late.signal]);
    return { kind: 'answered', answer: await answerOf(turn, { ...who, time }, call, either) };
  } catch (error) {
    signal.throwIfAborted();
    if (mustStayLocal(error)) return { kind: 'failed', isOut: false };
    if (!(error instanceof ProviderError || error instanceof RoleLate)) throw error;
    turn.log.warn('a model that shares the work failed', { ...who, error });
    return { kind: 'failed', isOut: health.failed(who, payerOf(turn), 'silent') };
  } finally {
    deadline[Symbol.dispose]();
    turn.time.goOn();
  }
}

const mustStayLocal = (error: unknown) =>
  error instanceof SpendingRefusedError && error.because === 'local_only';

export const payerOf = ({ input }: ModeTurn) => input.messages[0].message;

async function answerOf(
  turn: ModeTurn,
  { role, model, time }: RoleModel & { readonly time: TurnTime },
  { system, timeoutMs: _, ...asked }: RoleCall,
  signal: AbortSignal,
): Promise<RoleAnswer> {
  const { messages, tools, maxTokens } = asked;
  const request = { ...asked, system: [{ text: system, stable: true }] };
  const inputTokens = () =>
    textTokens(system) + messagesTokens(messages) + textTokens(JSON.stringify(tools));
  const { turnId } = turn.input;
  const metered = { role, turnId, maxTokens, inputTokens };
  const meter = chargedMeter(turn.spending, payerOf(turn), metered);
  const handle = turn.models.resolve(model, 'once');
  const watch = loopWatch(turn, handle);
  for await (const event of untilAborted(handle.stream(request, signal, meter), signal)) {
    // A wait for a place at a local server is no part of the call, nor of the turn.
    const isWaiting = event.type === 'waiting' && event.ahead > 0;
    if (isWaiting) turn.notices.tell(waitingNotice(event));
    for (const each of [time, turn.time]) isWaiting ? each.standStill() : each.goOn();
    if (event.type === 'finished') {
      const used = event.usage === undefined ? {} : { usage: event.usage };
      turn.shared.add({ role, model: event.model, ...used });
      return event;
    }
    if (event.type === 'retrying') watch?.restart();
    const isPiece = event.type === 'text' || event.type === 'thinking';
    // What it wrote until then is what there is; asking once more is left to whoever asked.
    if (isPiece && watch?.isLooping(event.type, event.delta) === true)
      return cutAnswer({ handle }, watch);
  }
  throw new ProviderError('the answer did not end', {
    failure: { kind: 'malformed' },
    provider: handle.name,
    model: handle.name,
  });
}

// Asks a model for words that go to the person as they are: where they tell of what no tool did, it is
// asked once to correct them, like the main model. Nothing is rewritten here.

type Held = AskedRole & {
  /** It was asked to correct its words; what it used for both stands in the answer. */
  readonly wasDoubted?: true;
};

/** @throws as `askRole` */
export async function askHeld(
  turn: ModeTurn,
  asking: Parameters<typeof askRole>[1],
  call: RoleCall,
  signal: AbortSignal,
): Promise<Held> {
  const first = await askRole(turn, asking, call, signal);
  if (first.kind === 'failed' || first.answer.toolCalls.length > 0) return first;
  const { answer } = first;
  const sentences = claimsUndone(turn, answer, answer.text);
  if (sentences.length === 0) return first;
  const mayAct = call.tools.length > 0 && call.toolChoice === undefined;
  const messages = [
    ...call.messages,
    { role: 'assistant', text: answer.text, toolCalls: [], thinking: [] },
    { role: 'user', text: correctionNote(sentences, mayAct) },
  ] as const;
  const again = await askRole(turn, asking, { ...call, messages }, signal).catch(refused);
  // There is no money to ask again: the first answer stands.
  if (again === undefined) return { ...first, wasDoubted: true };
  if (again.kind === 'failed') return { ...again, wasDoubted: true };
  return { kind: 'answered', answer: together(answer, again.answer), wasDoubted: true };
}

function refused(error: unknown): undefined {
  if (!(error instanceof SpendingRefusedError)) throw error;
}

function together({ usage: before }: RoleAnswer, answer: RoleAnswer): RoleAnswer {
  const { usage } = answer;
  if (before === undefined) return answer;
  return { ...answer, usage: usage === undefined ? before : sum(before, usage) };
}

const sum = (one: TokenUsage, other: TokenUsage): TokenUsage => ({
  inputTokens: one.inputTokens + other.inputTokens,
  outputTokens: one.outputTokens + other.outputTokens,
  cachedTokens: one.cachedTokens + other.cachedTokens,
});
