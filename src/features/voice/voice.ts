// CONTRACT of voice engines: transcription and speech. Engines are servers with OpenAI's audio API
// or programs of this machine; their secrets stay with them.

import {
  type PaidCall,
  type PaidCalls,
  type PaidReservation,
  SpendingRefusedError,
} from '../../agent/agent.ts';
import { NanobotError } from '../../kernel/message/errors.ts';

export type Sound = {
  readonly content: Uint8Array;
  /** Detected from the content. */
  readonly mimeType: string;
};

export type SpokenWords = {
  /** Empty where no speech was found. */
  readonly text: string;
  /** ISO 639 code, where the engine reports it. */
  readonly language?: string;
  /** Duration by the engine, where it reports it. */
  readonly durationMs?: number;
};

export interface Transcriber {
  /**
   * Identifies engine, model and language, so that equal ids give equal transcripts; contains no
   * secret.
   */
  readonly id: string;
  /** Price per minute; 0: free, or unknown. */
  readonly price: number;
  /** Audio leaves one's own machines. */
  readonly isElsewhere: boolean;
  /** @throws VoiceError, the signal's reason */
  transcribe(sound: Sound, signal: AbortSignal): Promise<SpokenWords>;
}

export interface Speaker {
  readonly id: string;
  /** Price per million characters; 0: free, or unknown. */
  readonly price: number;
  /** Text leaves one's own machines. */
  readonly isElsewhere: boolean;
  /** Returns one audio file. @throws VoiceError, the signal's reason */
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

/** Failures which show that the engine did not start and charges nothing. */
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

/** `reason`: a text for people, without a full stop: `the engine does not answer`. */
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

// A paid call of an engine: reserved in the budgets before it and settled after it.

type CostlyCall<Result> = PaidCall & {
  /** The data leaves one's own machines. */
  readonly isElsewhere: boolean;
  /** The cost in millionths. */
  costOf(result: Result): number;
};

/** A free call needs no budget. @throws SpendingRefusedError, what the call throws */
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
