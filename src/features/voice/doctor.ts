// Checks whether the voice engines are available: a server that responds, a program that is
// installed.

import { type Finding, fail, type Machine, ok, warn } from '../../cli/doctor/machine-checks.ts';
import type { Config } from '../../kernel/config/config.ts';
import { isOnPath } from '../../lib/files/files.ts';
import { t } from '../../lib/texts.ts';
import { chosenEngines } from './index.ts';
import type { SpeechEngine, TranscriptionEngine } from './rules/voice-engine.ts';
import { pingEngine } from './transcribe.ts';
import { VoiceError } from './voice.ts';

const UNPRICED = t`, unknown price: not counted in budgets in money`;
const SET_UP = t`Add a Groq or OpenAI key, or set voice.transcription.`;

export async function checkVoice(
  terminal: Machine,
  config: Config,
  isLive: boolean,
): Promise<readonly Finding[]> {
  const { transcription, speech } = chosenEngines(config, terminal.env);
  const { engine } = config.voice.transcription;
  const isMissed = engine !== 'off' && engine !== 'auto';
  const spoken = config.voice.speech.engine !== 'off' && config.voice.reply !== 'never';
  return [
    transcription === undefined
      ? unset('listening', isMissed)
      : await engineFinding('listening', transcription, terminal, isLive),
    ...(!spoken
      ? []
      : [
          speech === undefined
            ? unset('speaking', true)
            : await engineFinding('speaking', speech, terminal, isLive),
        ]),
  ];
}

function unset(check: string, isMissed: boolean): Finding {
  if (isMissed) return warn(check, t`an engine is set, but its key is missing`, SET_UP);
  return ok(check, t`off: voice messages are not transcribed`);
}

async function engineFinding(
  check: string,
  engine: TranscriptionEngine | SpeechEngine,
  { env, clock }: Machine,
  isLive: boolean,
): Promise<Finding> {
  if (engine.kind === 'command') {
    const [program] = engine.argv;
    if (await isOnPath(program, env)) return ok(check, t`with ${program}`);
    return fail(check, t`${program} is not installed`, t`Install it, or choose another engine.`);
  }
  const name = `${engine.name} ${engine.model}${engine.price === undefined ? UNPRICED : ''}`;
  if (!isLive) return ok(check, t`${name} (not tested; --live sends a test request)`);
  try {
    await pingEngine(engine, clock);
    return ok(check, t`${name}: the server answers`);
  } catch (error) {
    if (!(error instanceof VoiceError)) throw error;
    return fail(check, `${engine.name}: ${error.message}`, SET_UP);
  }
}
