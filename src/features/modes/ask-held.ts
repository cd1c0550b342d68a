// Asks a model for words that go to the person as they are: where they tell of what no tool did, it is
// asked once to correct them, like the main model. Nothing is rewritten here.

import { SpendingRefusedError } from '../../agent/spending.ts';
import type { TokenUsage } from '../../kernel/message/transcript.ts';
import { claimsUndone } from '../steadiness/check-claims.ts';
import { correctionNote } from '../steadiness/rules/claims.ts';
import { type AskedRole, askRole, type RoleAnswer, type RoleCall } from './ask-role.ts';
import type { ModeTurn } from './modes.ts';

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
