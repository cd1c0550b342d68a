// What can go wrong with a Bot API call, told apart by what it means for a message: refused by
// Telegram, surely not arrived, or unknown. Nothing here carries the request's address, because the
// bot's token is part of it.

import {
  after,
  BACKOFF,
  DeliveryError,
  NanobotError,
  NEVER,
  type Remedy,
} from '../../kernel/message/errors.ts';

export type CallFailure =
  /** Telegram answered and said no. */
  | {
      readonly kind: 'refused';
      readonly code: number;
      readonly description: string;
      readonly retryAfterMs?: number;
      /** The group has this id now. */
      readonly migratedTo?: number;
    }
  /** The request was never written: name not found, connection refused, TLS failed. */
  | { readonly kind: 'not_reached'; readonly reason: string }
  /** The request was written and no usable answer came. */
  | { readonly kind: 'unanswered'; readonly reason: string };

export class BotCallError extends NanobotError {
  override readonly name = 'BotCallError';
  readonly failure: CallFailure;
  constructor(method: string, failure: CallFailure) {
    super(`telegram_${failure.kind}`, `Telegram ${method}: ${describeFailure(failure)}`);
    this.failure = failure;
  }
}

export function describeFailure(failure: CallFailure): string {
  if (failure.kind === 'refused') return `${failure.code} ${failure.description}`;
  return failure.kind === 'not_reached'
    ? `Telegram could not be reached (${failure.reason})`
    : `no usable answer from Telegram (${failure.reason})`;
}

const SERVER_ERROR = 500;

/** What a failed call means for the message it carried. `repeatable`: doing it twice is harmless. */
export function toDeliveryError(error: unknown, repeatable: boolean): unknown {
  if (!(error instanceof BotCallError)) return error;
  const { failure } = error;
  const isKnown =
    failure.kind === 'not_reached' || (failure.kind === 'refused' && failure.code < SERVER_ERROR);
  return new DeliveryError(error.message, {
    certainty: isKnown || repeatable ? 'not_sent' : 'unknown',
    remedy: remedyFor(failure),
    code: error.code,
  });
}

function remedyFor(failure: CallFailure): Remedy {
  if (failure.kind !== 'refused') return BACKOFF;
  if (failure.retryAfterMs !== undefined) return after(failure.retryAfterMs);
  // A refused token and a clash of programs concern the channel: its messages wait.
  if (failure.code === 401 || failure.code === 409 || failure.code === 429) return BACKOFF;
  return failure.code < SERVER_ERROR ? NEVER : BACKOFF;
}

const isRefusal = (error: unknown, pattern: RegExp) =>
  error instanceof BotCallError &&
  error.failure.kind === 'refused' &&
  error.failure.code === 400 &&
  pattern.test(error.failure.description);

export const isFormattingRefused = (error: unknown) => isRefusal(error, /can't parse entities/i);
export const isUnchanged = (error: unknown) => isRefusal(error, /message is not modified/i);
export const isGone = (error: unknown) =>
  isRefusal(error, /message to (?:edit|delete) not found|message can't be|MESSAGE_ID_INVALID/i) ||
  migratedTo(error) !== undefined;
/** Somebody deleted it before. */
export const isNotThere = (error: unknown) =>
  isRefusal(error, /message to delete not found|MESSAGE_ID_INVALID/i) ||
  migratedTo(error) !== undefined;
/** The topic was deleted, or the group has no topics any more. */
export const isTopicGone = (error: unknown) => isRefusal(error, /message thread not found/i);

/** The new id of a group that became a supergroup; what stood in it has other ids there. */
export function migratedTo(error: unknown): number | undefined {
  const failure = error instanceof BotCallError ? error.failure : undefined;
  return failure?.kind === 'refused' ? failure.migratedTo : undefined;
}
