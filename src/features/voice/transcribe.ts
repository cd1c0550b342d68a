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
import type { EngineAccess, TranscriptionEngine } from './rules/voice-engine.ts';
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

// One request to an audio server, with one more try where that can help, within a deadline. The
// server is the owner's own choice; its key is in no error, and nothing it answers with is repeated.

export type EngineCall = {
  readonly access: EngineAccess;
  /** Below the base, e.g. `audio/speech`. */
  readonly path: string;
  readonly contentType: string;
  /** Never a stream or a form: `fetch` leaves those behind, unhandled, when it is broken off. */
  readonly content: string | Uint8Array<ArrayBuffer>;
  readonly timeoutMs: number;
  /** A longer answer is none. */
  readonly maxAnswerBytes: number;
};

const RETRY_AFTER_MS = 500;
/** Statuses that may be over in a moment. */
const PASSING = [408, 409, 429];

/** The answer's body. @throws VoiceError, the signal's reason */
export async function callEngine(
  call: EngineCall,
  clock: Clock,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const deadline = new AbortController();
  const timer = clock.timer(call.timeoutMs, () => deadline.abort());
  const whole = AbortSignal.any([signal, deadline.signal]);
  try {
    const first = await tried(call, whole).catch((error: unknown) => {
      if (whole.aborted || !mayPass(error)) throw error;
      return undefined;
    });
    if (first !== undefined) return first;
    await clock.sleep(RETRY_AFTER_MS, whole);
    return await tried(call, whole);
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.signal.aborted) throw tooSlow();
    throw error;
  } finally {
    timer[Symbol.dispose]();
    deadline.abort();
  }
}

const tooSlow = () => new VoiceError('voice_timeout', 'the engine took too long');

const mayPass = (error: unknown) =>
  error instanceof VoiceError &&
  (error.code === 'voice_unreachable' ||
    error.code === 'voice_busy' ||
    error.code === 'voice_engine_failed');

async function tried(call: EngineCall, signal: AbortSignal): Promise<Uint8Array> {
  const { access, path, contentType } = call;
  const key = access.apiKey === '' ? {} : { authorization: `Bearer ${access.apiKey}` };
  const response = await fetch(`${access.apiBase}/${path}`, {
    method: 'POST',
    headers: { 'content-type': contentType, ...key },
    body: call.content,
    // A sound of the person and the key go where the owner said, and nowhere else.
    redirect: 'error',
    signal,
  }).catch((cause: unknown) => {
    throw new VoiceError('voice_unreachable', 'the engine cannot be reached', { cause });
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw refusal(response.status);
  }
  return readBody(response, call.maxAnswerBytes);
}

function refusal(status: number): VoiceError {
  const detail = `status ${status}`;
  if (status === 401 || status === 403) {
    return new VoiceError('voice_key_refused', 'the engine refuses the key', { detail });
  }
  if (status === 413) {
    return new VoiceError('voice_too_large', 'it is too large for the engine', { detail });
  }
  if (status === 404) {
    const reason = 'the engine knows no such address or model';
    return new VoiceError('voice_not_found', reason, { detail });
  }
  if (PASSING.includes(status)) {
    return new VoiceError('voice_busy', 'the engine is busy', { detail });
  }
  return status >= 500
    ? new VoiceError('voice_engine_failed', 'the engine failed', { detail })
    : new VoiceError('voice_rejected', 'the engine did not take it', { detail });
}

async function readBody(response: Response, maxBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const part of response.body ?? []) {
      size += part.length;
      if (size > maxBytes) break;
      parts.push(part);
    }
  } catch (cause) {
    throw new VoiceError('voice_unreachable', 'the engine broke off', { cause });
  }
  if (size > maxBytes) throw new VoiceError('voice_malformed', 'the engine answered too much');
  return Buffer.concat(parts);
}

const PING_MS = 10_000;

/** Whether the server answers and takes the key; what else it says of itself does not count. */
export async function pingEngine({ apiBase, apiKey }: EngineAccess, clock: Clock): Promise<void> {
  const deadline = new AbortController();
  const timer = clock.timer(PING_MS, () => deadline.abort());
  const headers = apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` };
  try {
    const response = await fetch(`${apiBase}/models`, {
      headers,
      redirect: 'error',
      signal: deadline.signal,
    });
    await response.body?.cancel();
    if (response.status === 401 || response.status === 403) throw refusal(response.status);
  } catch (cause) {
    if (cause instanceof VoiceError) throw cause;
    throw new VoiceError('voice_unreachable', 'the engine cannot be reached', { cause });
  } finally {
    timer[Symbol.dispose]();
  }
}
