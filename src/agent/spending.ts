// CONTRACT of what watches over the money: asked before every try of a model call, retries and
// fallbacks included, and told what the try took.

import type { Payer } from '../features/spending/rules/budget-limits.ts';
import type { Drift } from '../features/steadiness/rules/anti-drift.ts';
import { NanobotError, type ProviderFailure } from '../kernel/message/errors.ts';
import type { TurnId } from '../kernel/message/ids.ts';
import type { TokenUsage } from '../kernel/message/transcript.ts';
import type { TryPlace } from '../providers/provider.ts';

/** What a call between turns is for, as figures about model calls name it. */
export type SideRole = 'compaction' | 'mail_summary' | 'reflection' | 'claim_check';

export type PlannedCall = {
  readonly payer: Payer;
  /** What for, as figures about model calls name it. */
  readonly role: string;
  /** Left out between turns. */
  readonly turnId?: TurnId;
  /** As configured, with its prefix. */
  readonly model: string;
  /** Estimates: the question, and the longest answer that was asked for. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** A limit in money counts for it that is no budget of the payer. */
  readonly countsMoney?: boolean;
} & TryPlace;

export type CallEnd = (
  | { readonly kind: 'finished'; readonly usage?: TokenUsage; readonly answerTokens: number }
  /** `answerTokens`: estimate of what was streamed until then. */
  | { readonly kind: 'failed'; readonly failure: ProviderFailure; readonly answerTokens: number }
) & {
  /** Where somebody looked at what was answered. */
  readonly drift?: Drift;
};

/** The worst case of the call is held back until it is settled. */
export type Reservation = {
  readonly kind: 'reserved';
  /** The longest answer for which there is room. */
  readonly outputTokens: number;
  /** Once; a second time changes nothing. */
  settle(end: CallEnd): void;
};

/** No call may be made; `text` is for the person. */
export type Refusal = {
  readonly kind: 'refused';
  readonly text: string;
  /** Left out: a budget. */
  readonly because?: 'local_only';
};

export interface SpendingGuard {
  /** Waits for calls under way where there is room only after them. @throws the signal's reason */
  reserve(call: PlannedCall, signal: AbortSignal): Promise<Reservation | Refusal>;
  /** The model to ask now: `cheaper()` where a budget of the payer is almost used up. */
  modelFor(payer: Payer, model: string, cheaper: (model: string) => string): string;
}

/** A call of a paid service that is no model, outside of turns: sound to words, words to sound. */
export type PaidCall = {
  readonly payer: Payer;
  /** At worst, in millionths of the currency. */
  readonly micros: number;
};

export type PaidReservation = {
  readonly kind: 'reserved';
  /** With what it took, in millionths; once, a second time changes nothing. */
  settle(micros: number): void;
};

export interface PaidCalls {
  /** As `reserve`. @throws the signal's reason */
  reservePaid(call: PaidCall, signal: AbortSignal): Promise<PaidReservation | Refusal>;
  /** Where nothing of the payer's conversation may go to a service. */
  refusedElsewhere(payer: Payer): Promise<Refusal | undefined>;
}

/** The budget of today is used up, or the model must not be asked there. */
export class SpendingRefusedError extends NanobotError {
  override readonly name = 'SpendingRefusedError';
  /** For the person. */
  readonly text: string;
  readonly because: Refusal['because'];
  constructor({ text, because }: Omit<Refusal, 'kind'>) {
    const why = because === undefined ? 'the budget is used up' : 'the conversation stays local';
    super('spending_refused', why, { userText: text });
    this.text = text;
    this.because = because;
  }
}
