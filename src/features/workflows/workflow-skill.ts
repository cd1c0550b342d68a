// Carries out one LLM_SKILL by one answer that has to fit the schema. What does not fit is asked for again
// with what is wrong.

import { z } from 'zod';
import { failureText } from '../../agent/stream.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import type { ModelMessage } from '../../kernel/message/transcript.ts';
import type { StepResult } from './rules/result.ts';
import {
  askSkill,
  fits,
  handleFor,
  missing,
  promptOf,
  readAnswer,
  type SkillCall,
  type SkillDeps,
  systemFor,
  tooLong,
  unpriced,
  usedUp,
} from './workflow-ask.ts';

/** @throws SpendingRefusedError, or the signal's reason */
export async function runSkill(
  deps: SkillDeps,
  call: SkillCall,
  signal: AbortSignal,
): Promise<StepResult> {
  const prompt = promptOf(call);
  if (prompt.kind === 'missing') return missing(prompt.paths);
  const { capability, hasMoneyLimit } = call;
  const schema = z.fromJSONSchema(capability.output);
  const messages: ModelMessage[] = [{ role: 'user', text: prompt.value }];
  let spent = { tokens: 0, micros: 0 };
  const { isForeign } = prompt;
  const failed = (error: string, mayRetry = true) =>
    ({ kind: 'failed', error, mayRetry, isForeign, spent }) as const;
  try {
    const handle = handleFor(deps, call);
    for (let tries = 1; ; tries += 1) {
      const over = usedUp(spent, call);
      if (over !== undefined) return failed(over, false);
      const question = { system: systemFor(capability), messages };
      if (!fits(handle, question)) return failed(tooLong(handle), false);
      const answer = await askSkill(deps, call, { handle, question, role: 'workflow' }, signal);
      if (answer.micros === undefined && hasMoneyLimit) return failed(unpriced(handle), false);
      spent = { tokens: spent.tokens + answer.tokens, micros: spent.micros + (answer.micros ?? 0) };
      const read = readAnswer(answer.text, schema);
      if (read.kind === 'fits') return { kind: 'skill', value: read.value, isForeign, spent };
      if (tries >= capability.tries)
        return failed(`the answer does not fit its schema: ${read.problem}`);
      messages.push({ role: 'assistant', text: answer.text, toolCalls: [], thinking: [] });
      messages.push({
        role: 'user',
        text: `[Your answer cannot be used: ${read.problem}. Write the whole JSON object again.]`,
      });
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ProviderError) return failed(failureText(error));
    throw error;
  }
}
