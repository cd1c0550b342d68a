// Which engines listen and speak by the configuration in force, built when they are first needed and
// again when their settings changed.

import type { Config } from '../../kernel/config/config.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createCredentials } from '../../providers/credentials.ts';
import {
  type AccessTo,
  type SpeechEngine,
  speechEngine,
  type TranscriptionEngine,
  transcriptionEngine,
} from './rules/voice-engine.ts';
import type { Speaker, Transcriber } from './voice.ts';

export type ChosenEngines = {
  readonly transcription: TranscriptionEngine | undefined;
  readonly speech: SpeechEngine | undefined;
};

export function chosenEngines(config: Config, env: Environment): ChosenEngines {
  const credentials = createCredentials(config, env, []);
  const accessTo: AccessTo = (vendor) => credentials.accessTo(vendor);
  const { currency } = config.limits.budget;
  return {
    transcription: transcriptionEngine(config.voice, accessTo, currency),
    speech: speechEngine(config.voice, accessTo, currency),
  };
}

export interface VoiceEngines {
  transcriber(): Promise<Transcriber | undefined>;
  speaker(): Promise<Speaker | undefined>;
}

/** Their code is loaded with the first sound. */
export function createVoiceEngines(
  config: () => Config,
  env: Environment,
  clock: Clock,
): VoiceEngines {
  const deps = { clock, env };
  return {
    async transcriber() {
      const { transcription } = chosenEngines(config(), env);
      if (transcription === undefined) return undefined;
      const { createTranscriber } = await import('./transcribe.ts');
      return createTranscriber(transcription, deps);
    },
    async speaker() {
      const { speech } = chosenEngines(config(), env);
      if (speech === undefined) return undefined;
      const { createSpeaker } = await import('./speak.ts');
      return createSpeaker(speech, deps);
    },
  };
}
