// Whether what listens and speaks is there: a server that answers, a program that is installed.

import { type Finding, fail, ok, warn } from '../../cli/doctor/finding.ts';
import type { Terminal } from '../../cli/terminal.ts';
import type { Config } from '../../kernel/config/config.ts';
import { isOnPath } from '../../lib/files/files.ts';
import { chosenEngines } from './install.ts';
import type { SpeechEngine, TranscriptionEngine } from './rules/voice-engine.ts';
import { pingEngine } from './transcribe.ts';
import { VoiceError } from './voice.ts';

const UNPRICED = ', unpriced: budgets in money do not count it';
const SET_UP = 'A Groq or OpenAI key is enough, or set voice.transcription.';

export async function checkVoice(
  terminal: Terminal,
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
  if (isMissed) return warn(check, 'its engine is set, but no key of it is known', SET_UP);
  return ok(check, 'no engine: voice messages are not listened to');
}

async function engineFinding(
  check: string,
  engine: TranscriptionEngine | SpeechEngine,
  { env, clock }: Terminal,
  isLive: boolean,
): Promise<Finding> {
  if (engine.kind === 'command') {
    const [program] = engine.argv;
    if (await isOnPath(program, env)) return ok(check, `by ${program}`);
    return fail(check, `${program} is not installed`, 'Install it, or set another engine.');
  }
  const name = `${engine.name} ${engine.model}${engine.price === undefined ? UNPRICED : ''}`;
  if (!isLive) return ok(check, `${name} (not asked; --live asks it)`);
  try {
    await pingEngine(engine, clock);
    return ok(check, `${name}: the server answers`);
  } catch (error) {
    if (!(error instanceof VoiceError)) throw error;
    return fail(check, `${engine.name}: ${error.message}`, SET_UP);
  }
}
