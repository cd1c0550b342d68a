// Charges a model call to whoever asked: every try of it is reserved before it is made and settled
// after it.

import type { Payer } from '../features/spending/rules/budget-limits.ts';
import type { Drift } from '../features/steadiness/rules/anti-drift.ts';
import { driftIn } from '../features/steadiness/steadiness.ts';
import type { TurnId } from '../kernel/message/ids.ts';
import type { CallMeter } from '../providers/provider.ts';
import type { LoopWatch } from './guard-calls.ts';
import { expectedTokens, type ModelCall } from './model-call.ts';
import { CHARS_PER_TOKEN } from './rules/tokens.ts';
import { type SpendingGuard, SpendingRefusedError } from './spending.ts';
import type { TurnContext } from './turn-context.ts';

export type MeteredCall = {
  /** What for, as figures about model calls name it. */
  readonly role: string;
  readonly turnId?: TurnId;
  readonly maxTokens: number;
  readonly thinkingBudget?: number;
  /** A limit in money counts for it that is no budget of the payer. */
  readonly countsMoney?: boolean;
  /** Estimate of the question; asked before each try. */
  inputTokens(): number;
  /** How far the answer is from a good one, asked when it has ended; left out: nobody looks. */
  drift?(): Drift;
};

/** @throws SpendingRefusedError from `begin`: the budget is used up */
export function meterOf(turn: TurnContext, call: ModelCall, watch?: LoopWatch): CallMeter {
  const [{ message: payer }] = turn.input.messages;
  return chargedMeter(turn.spending, payer, {
    ...call.request,
    role: turn.input.confines?.role ?? 'turn',
    turnId: turn.input.turnId,
    inputTokens: () => expectedTokens(turn, call),
    ...(watch === undefined ? {} : { drift: () => driftIn(turn, watch) }),
  });
}

/** @throws SpendingRefusedError from `begin`: the budget is used up */
export function chargedMeter(
  spending: SpendingGuard,
  payer: Payer,
  { maxTokens, thinkingBudget = 0, countsMoney, inputTokens, drift, ...about }: MeteredCall,
): CallMeter {
  const { role, turnId } = about;
  const whatFor = { role, ...(turnId === undefined ? {} : { turnId }) };
  return {
    about: whatFor,
    async begin(model, signal, at = {}) {
      const outputTokens = maxTokens + thinkingBudget;
      const tokens = { inputTokens: inputTokens(), outputTokens };
      const counted = countsMoney === undefined ? {} : { countsMoney };
      const planned = { payer, model, ...whatFor, ...tokens, ...counted, ...at };
      const reserved = await spending.reserve(planned, signal);
      if (reserved.kind === 'refused') throw new SpendingRefusedError(reserved);
      return {
        maxTokens: Math.max(1, Math.min(maxTokens, reserved.outputTokens - thinkingBudget)),
        end({ answerChars, ...how }) {
          const answerTokens = Math.ceil(answerChars / CHARS_PER_TOKEN);
          const drifted = drift === undefined ? {} : { drift: drift() };
          reserved.settle({ ...how, answerTokens, ...drifted });
        },
      };
    },
  };
}
