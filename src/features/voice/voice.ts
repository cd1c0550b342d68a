// CONTRACT of what listens and speaks: sound to words, words to sound. Engines are servers that speak
// OpenAI's audio API or programs of this machine; what they need of secrets stays with them.

import {
  type PaidCall,
  type PaidCalls,
  type PaidReservation,
  SpendingRefusedError,
} from '../../agent/agent.ts';
import { NanobotError } from '../../kernel/message/errors.ts';

export type Sound = {
  readonly content: Uint8Array;
  /** Found in the content. */
  readonly mimeType: string;
};

export type SpokenWords = {
  /** Empty where nothing is said. */
  readonly text: string;
  /** ISO 639 code where the engine tells. */
  readonly language?: string;
  /** How long the engine took the sound for, where it tells. */
  readonly durationMs?: number;
};

export interface Transcriber {
  /** The same for the same words of the same sound: engine, model, language; no secret. */
  readonly id: string;
  /** Money for a minute; 0: free, or not known. */
  readonly price: number;
  /** What is said leaves one's own machines. */
  readonly isElsewhere: boolean;
  /** @throws VoiceError, the signal's reason */
  transcribe(sound: Sound, signal: AbortSignal): Promise<SpokenWords>;
}

export interface Speaker {
  readonly id: string;
  /** Money for a million characters; 0: free, or not known. */
  readonly price: number;
  /** What is said leaves one's own machines. */
  readonly isElsewhere: boolean;
  /** One sound file. @throws VoiceError, the signal's reason */
  speak(text: string, signal: AbortSignal): Promise<Uint8Array>;
}

export type VoiceFailure =
  | 'voice_key_refused'
  | 'voice_too_large'
  | 'voice_busy'
  | 'voice_rejected'
  | 'voice_not_found'
  | 'voice_engine_failed'
  | 'voice_unreachable'
  | 'voice_timeout'
  | 'voice_malformed'
  | 'voice_command_missing'
  | 'voice_command_failed';

/** Failures by which the engine shows that it did not begin, and charges nothing. */
const UNBILLED: readonly VoiceFailure[] = [
  'voice_key_refused',
  'voice_too_large',
  'voice_busy',
  'voice_rejected',
  'voice_not_found',
  'voice_engine_failed',
  'voice_unreachable',
  'voice_command_missing',
];

export const isUnbilled = (error: unknown): boolean =>
  error instanceof VoiceError && UNBILLED.includes(error.code);

/** `reason` in words for people, without a full stop: `the engine does not answer`. */
export class VoiceError extends NanobotError {
  override readonly name = 'VoiceError';
  declare readonly code: VoiceFailure;
  readonly reason: string;
  constructor(
    code: VoiceFailure,
    reason: string,
    options: { readonly detail?: string; readonly cause?: unknown } = {},
  ) {
    const { detail, cause } = options;
    super(code, detail === undefined ? reason : `${reason} (${detail})`, { cause });
    this.reason = reason;
  }
}

// A call of an engine that costs money, held back in the budgets before it and settled after it.

type CostlyCall<Result> = PaidCall & {
  /** Leaves one's own machines. */
  readonly isElsewhere: boolean;
  /** What it took, in millionths. */
  costOf(result: Result): number;
};

/** What costs nothing asks no budget. @throws SpendingRefusedError, what the call throws */
export async function charged<Result>(
  { payer, micros, isElsewhere, costOf }: CostlyCall<Result>,
  call: () => Promise<Result>,
  { spending, signal }: { readonly spending: PaidCalls; readonly signal: AbortSignal },
): Promise<Result> {
  const kept = isElsewhere ? await spending.refusedElsewhere(payer) : undefined;
  if (kept !== undefined) throw new SpendingRefusedError(kept);
  if (micros === 0) return call();
  const reserved = await spending.reservePaid({ payer, micros }, signal);
  if (reserved.kind === 'refused') throw new SpendingRefusedError(reserved);
  return settled(reserved, call, micros, costOf);
}

async function settled<Result>(
  { settle }: PaidReservation,
  call: () => Promise<Result>,
  micros: number,
  costOf: (result: Result) => number,
): Promise<Result> {
  try {
    const result = await call();
    settle(costOf(result));
    return result;
  } catch (error) {
    settle(isUnbilled(error) ? 0 : micros);
    throw error;
  }
}
