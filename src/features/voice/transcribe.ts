// Sound to words: by a server's `/audio/transcriptions` (OpenAI, Groq and whoever speaks like them)
// or by a program of this machine.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Environment } from '../../kernel/config/environment.ts';
import { parseJson } from '../../lib/json/json.ts';
import { isHomeUrl } from '../../lib/net/address-rules.ts';
import { languageCode } from '../../lib/text/language-code.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { callEngine } from './engine-call.ts';
import type { TranscriptionEngine } from './rules/voice-engine.ts';
import { filledIn, inPrivateFolder, runProgram } from './run-program.ts';
import { type Sound, type SpokenWords, type Transcriber, VoiceError } from './voice.ts';

export type EngineDeps = { readonly clock: Clock; readonly env: Environment };

const MAX_ANSWER_BYTES = 2_000_000;
/** These take no `verbose_json`, and so do not tell the language (OpenAI, createTranscription). */
const BRIEF_MODELS = /^gpt-/;

/** Servers go by the name of the file. */
const ENDINGS: Readonly<Record<string, string>> = {
  'audio/ogg': 'ogg',
  'application/ogg': 'ogg',
  'audio/opus': 'ogg',
  'audio/mpeg': 'mp3',
  'audio/mp4': 'm4a',
  'audio/x-m4a': 'm4a',
  'video/mp4': 'mp4',
  'audio/wav': 'wav',
  'audio/vnd.wave': 'wav',
  'audio/webm': 'webm',
  'video/webm': 'webm',
  'audio/flac': 'flac',
  'audio/x-flac': 'flac',
  'audio/aac': 'aac',
  'audio/amr': 'amr',
};

/** `duration` in seconds, with verbose_json; what is no length is left out. */
const answer = z.object({
  text: z.string(),
  language: z.string().nullish(),
  duration: z.coerce.number().positive().nullish().catch(undefined),
});

export function createTranscriber(engine: TranscriptionEngine, deps: EngineDeps): Transcriber {
  const what = engine.kind === 'server' ? [engine.apiBase, engine.model] : engine.argv;
  return {
    id: [engine.kind, ...what, engine.language].join(' '),
    price: engine.price ?? 0,
    isElsewhere: engine.kind === 'server' && !isHomeUrl(engine.apiBase),
    transcribe: (sound, signal) =>
      engine.kind === 'server'
        ? byServer(engine, sound, deps.clock, signal)
        : byProgram(engine, sound, deps, signal),
  };
}

const fileName = ({ mimeType }: Sound) => `sound.${ENDINGS[mimeType] ?? 'ogg'}`;

async function byServer(
  engine: Extract<TranscriptionEngine, { kind: 'server' }>,
  sound: Sound,
  clock: Clock,
  signal: AbortSignal,
): Promise<SpokenWords> {
  const form = new FormData();
  const file = new Blob([new Uint8Array(sound.content)], { type: sound.mimeType });
  form.set('file', file, fileName(sound));
  form.set('model', engine.model);
  form.set('response_format', BRIEF_MODELS.test(engine.model) ? 'json' : 'verbose_json');
  if (engine.language !== '') form.set('language', engine.language);
  const written = new Response(form);
  const given = await callEngine(
    {
      access: engine,
      path: 'audio/transcriptions',
      contentType: written.headers.get('content-type') ?? '',
      content: new Uint8Array(await written.arrayBuffer()),
      timeoutMs: engine.timeoutMs,
      maxAnswerBytes: MAX_ANSWER_BYTES,
    },
    clock,
    signal,
  );
  return wordsOf(Buffer.from(given).toString('utf8'), engine.language);
}

function byProgram(
  engine: Extract<TranscriptionEngine, { kind: 'command' }>,
  sound: Sound,
  { clock, env }: EngineDeps,
  signal: AbortSignal,
): Promise<SpokenWords> {
  return inPrivateFolder(async (folder) => {
    const file = join(folder, fileName(sound));
    await writeFile(file, sound.content, { mode: 0o600 });
    const language = engine.language === '' ? 'auto' : engine.language;
    const argv = filledIn(engine.argv, { file, language });
    const run = { argv, folder, env, timeoutMs: engine.timeoutMs };
    const output = await runProgram({ ...run, maxOutputBytes: MAX_ANSWER_BYTES }, clock, signal);
    const text = Buffer.from(output).toString('utf8');
    return text.trimStart().startsWith('{')
      ? wordsOf(text, engine.language)
      : worded(text, engine.language);
  });
}

function wordsOf(text: string, language: string): SpokenWords {
  const found = answer.safeParse(parseJson(text));
  if (!found.success) throw new VoiceError('voice_malformed', 'the engine answered nothing usable');
  const { duration } = found.data;
  const words = worded(found.data.text, found.data.language ?? language);
  return typeof duration === 'number'
    ? { ...words, durationMs: Math.ceil(duration * 1000) }
    : words;
}

function worded(text: string, language: string): SpokenWords {
  const code = languageCode(language);
  return { text: text.trim(), ...(code === undefined ? {} : { language: code }) };
}
