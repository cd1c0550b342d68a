// Routing: which model answers, and whether the thread fits it.

import type { SignalOf, StateOf } from '../core/turn-state.ts';
import { clearOldResults } from './clear-old-results.ts';
import { expectedTokens, planCall } from './model-call.ts';
import type { TurnContext } from './turn-context.ts';

/** @throws ProviderError `unknown_model` */
export function routeTurn(turn: TurnContext, { ask }: StateOf<'routing'>): SignalOf<'routing'> {
  const [{ message }] = turn.input.messages;
  const chosen = turn.input.settings.model ?? turn.models.defaultModel;
  const model = turn.spending.modelFor(message, chosen, (name) => turn.models.fast(name));
  const planned = planCall(turn, model, ask);
  const call = clearOldResults(turn, planned) ? planCall(turn, model, ask) : planned;
  const { inputTokens, outputTokens } = call.budget;
  const input = expectedTokens(turn, call);
  const size = input <= inputTokens ? 'fits' : 'too_large';
  const expected = Math.min(input, inputTokens) + outputTokens;
  return { type: 'routed', model, size, expectedTokens: expected };
}
