// CONTRACT of what listens and speaks: sound to words, words to sound. Engines are servers that speak
// OpenAI's audio API or programs of this machine; what they need of secrets stays with them.

import { NanobotError } from '../core/errors.ts';

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
};

export interface Transcriber {
  /** The same for the same words of the same sound: engine, model, language; no secret. */
  readonly id: string;
  /** @throws VoiceError, the signal's reason */
  transcribe(sound: Sound, signal: AbortSignal): Promise<SpokenWords>;
}

export interface Speaker {
  readonly id: string;
  /** One sound file. @throws VoiceError, the signal's reason */
  speak(text: string, signal: AbortSignal): Promise<Uint8Array>;
}

export type VoiceFailure =
  | 'voice_key_refused'
  | 'voice_too_large'
  | 'voice_busy'
  | 'voice_rejected'
  | 'voice_engine_failed'
  | 'voice_unreachable'
  | 'voice_timeout'
  | 'voice_malformed'
  | 'voice_command_missing'
  | 'voice_command_failed';

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
