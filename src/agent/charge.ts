// Charges a model call to whoever asked: every try of it is reserved before it is made and settled
// after it.

import { CHARS_PER_TOKEN } from '../core/tokens.ts';
import type { CallMeter } from '../providers/provider.ts';
import { expectedTokens, type ModelCall } from './model-call.ts';
import { SpendingRefusedError } from './spending.ts';
import type { TurnContext } from './turn-context.ts';

/** @throws SpendingRefusedError from `begin`: the budget is used up */
export function meterOf(turn: TurnContext, call: ModelCall): CallMeter {
  const [{ message: payer }] = turn.input.messages;
  const { maxTokens, thinkingBudget = 0 } = call.request;
  return {
    async begin(model, signal) {
      const inputTokens = expectedTokens(turn, call);
      const outputTokens = maxTokens + thinkingBudget;
      const planned = { payer, model, inputTokens, outputTokens };
      const reserved = await turn.spending.reserve(planned, signal);
      if (reserved.kind === 'refused') throw new SpendingRefusedError(reserved.text);
      return {
        maxTokens: Math.max(1, Math.min(maxTokens, reserved.outputTokens - thinkingBudget)),
        end({ answerChars, ...how }) {
          reserved.settle({ ...how, answerTokens: Math.ceil(answerChars / CHARS_PER_TOKEN) });
        },
      };
    },
  };
}
