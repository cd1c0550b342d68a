// Text to speech by a server's `/audio/speech` (OpenAI and compatible servers) or by a program of
// this machine, which gets the text on its stdin and never as an argument.

import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { isHomeUrl } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';
import type { SpeechEngine } from './rules/voice-engine.ts';
import { filledIn, inPrivateFolder, runProgram } from './run-program.ts';
import { callEngine, type EngineDeps } from './transcribe.ts';
import { type Speaker, VoiceError } from './voice.ts';

const MAX_SOUND_BYTES = 25_000_000;

export function createSpeaker(engine: SpeechEngine, deps: EngineDeps): Speaker {
  const what =
    engine.kind === 'server' ? [engine.apiBase, engine.model, engine.voice] : engine.argv;
  return {
    id: [engine.kind, ...what].join(' '),
    price: engine.price ?? 0,
    isElsewhere: engine.kind === 'server' && !isHomeUrl(engine.apiBase),
    async speak(text, signal) {
      const sound = await (engine.kind === 'server'
        ? byServer(engine, text, deps, signal)
        : byProgram(engine, text, deps, signal));
      if (sound.length > 0) return sound;
      throw new VoiceError('voice_malformed', t`the engine returned no audio`);
    },
  };
}

function byServer(
  engine: Extract<SpeechEngine, { kind: 'server' }>,
  input: string,
  { clock }: EngineDeps,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const { model, voice, format } = engine;
  const content = JSON.stringify({ model, voice, input, response_format: format });
  const call = { path: 'audio/speech', contentType: 'application/json', content };
  const { timeoutMs } = engine;
  return callEngine(
    { access: engine, ...call, timeoutMs, maxAnswerBytes: MAX_SOUND_BYTES },
    clock,
    signal,
  );
}

function byProgram(
  engine: Extract<SpeechEngine, { kind: 'command' }>,
  text: string,
  { clock, env }: EngineDeps,
  signal: AbortSignal,
): Promise<Uint8Array> {
  return inPrivateFolder(async (folder) => {
    const file = join(folder, 'speech.wav');
    const writesFile = engine.argv.some((part) => part.includes('{file}'));
    const run = {
      ...{ argv: filledIn(engine.argv, { file }), folder, env },
      ...{ timeoutMs: engine.timeoutMs, input: `${text}\n`, maxOutputBytes: MAX_SOUND_BYTES },
    };
    const printed = await runProgram(run, clock, signal);
    return writesFile ? soundIn(file) : printed;
  });
}

async function soundIn(path: string): Promise<Uint8Array> {
  await using file = await open(path, 'r').catch((cause: unknown) => {
    throw new VoiceError('voice_malformed', t`the program wrote no audio`, { cause });
  });
  const { size } = await file.stat();
  if (size <= MAX_SOUND_BYTES) return await file.readFile();
  throw new VoiceError('voice_malformed', t`the program wrote too much`);
}
