// Speech to text by a server's `/audio/transcriptions` (OpenAI, Groq and compatible servers) or by
// a program of this machine.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Environment } from '../../kernel/config/environment.ts';
import { parseJson } from '../../lib/json/json.ts';
import { isHomeUrl } from '../../lib/net/address-rules.ts';
import { fetchThrough, proxyErrorIn } from '../../lib/net/proxies.ts';
import { boundedBody } from '../../lib/net/safe-fetch.ts';
import { languageCode } from '../../lib/text/decode-text.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, reasonFirst, withDeadline } from '../../lib/time/clock.ts';
import type { EngineAccess, TranscriptionEngine } from './rules/voice-engine.ts';
import { filledIn, inPrivateFolder, runProgram } from './run-program.ts';
import {
  type Sound,
  type SpokenWords,
  type Transcriber,
  VoiceError,
  type VoiceFailure,
} from './voice.ts';

export type EngineDeps = { readonly clock: Clock; readonly env: Environment };

const MAX_ANSWER_BYTES = 2_000_000;
/**
 * These do not support `verbose_json` and so do not return the language (OpenAI,
 * createTranscription).
 */
const BRIEF_MODELS = /^gpt-/;

/** Servers detect the format by the name of the file. */
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

/** `duration` in seconds, with verbose_json; an invalid one is dropped. */
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
  if (!found.success)
    throw new VoiceError('voice_malformed', t`the engine answered nothing usable`);
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

// One request to an audio server with one retry where that can help, within a deadline. No error
// contains the key or text of the server's response.

export type EngineCall = {
  readonly access: EngineAccess;
  /** Relative to the base, e.g. `audio/speech`. */
  readonly path: string;
  readonly contentType: string;
  /** Never a stream or a form: `fetch` leaves their errors unhandled when it is aborted. */
  readonly content: string | Uint8Array<ArrayBuffer>;
  readonly timeoutMs: number;
  /** A longer response is an error. */
  readonly maxAnswerBytes: number;
};

const RETRY_AFTER_MS = 500;

/** The body of the response. @throws VoiceError, the signal's reason */
export function callEngine(
  call: EngineCall,
  clock: Clock,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const work = reasonFirst(async (whole) => {
    try {
      return await tried(call, whole);
    } catch (error) {
      if (whole.aborted || !mayPass(error)) throw error;
    }
    await clock.sleep(RETRY_AFTER_MS, whole);
    return tried(call, whole);
  });
  return withDeadline(clock, call.timeoutMs, tooSlow, signal, work);
}

const tooSlow = () => new VoiceError('voice_timeout', t`the engine took too long`);

const mayPass = (error: unknown) =>
  error instanceof VoiceError &&
  ['voice_unreachable', 'voice_busy', 'voice_engine_failed'].includes(error.code);

async function tried(call: EngineCall, signal: AbortSignal): Promise<Uint8Array> {
  const { access, path, contentType } = call;
  const key = access.apiKey === '' ? {} : { authorization: `Bearer ${access.apiKey}` };
  const response = await fetchThrough(access.proxy ?? '')(`${access.apiBase}/${path}`, {
    method: 'POST',
    headers: { 'content-type': contentType, ...key },
    body: call.content,
    // A person's audio and the key go only to the configured server.
    redirect: 'error',
    signal,
  }).catch((cause: unknown) => {
    throw unreachable(cause);
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw refusal(response.status);
  }
  return readBody(response, call.maxAnswerBytes);
}

function unreachable(cause: unknown): VoiceError {
  const proxy = proxyErrorIn(cause);
  const why = proxy === undefined ? '' : `: ${proxy.message}`;
  return new VoiceError('voice_unreachable', t`the engine cannot be reached${why}`, { cause });
}

type Refusal = readonly [code: VoiceFailure, reason: string];

const KEY_REFUSED: Refusal = ['voice_key_refused', t`the engine refuses the key`];
const BUSY: Refusal = ['voice_busy', t`the engine is busy`];
const REFUSALS: Readonly<Record<number, Refusal>> = {
  401: KEY_REFUSED,
  403: KEY_REFUSED,
  404: ['voice_not_found', t`the engine does not know this address or model`],
  413: ['voice_too_large', t`it is too large for the engine`],
  // These may be temporary.
  408: BUSY,
  409: BUSY,
  429: BUSY,
};

function refusal(status: number): VoiceError {
  const other: Refusal =
    status >= 500
      ? ['voice_engine_failed', t`the engine failed`]
      : ['voice_rejected', t`the engine did not accept it`];
  const [code, reason] = REFUSALS[status] ?? other;
  return new VoiceError(code, reason, { detail: t`status ${status}` });
}

async function readBody(response: Response, maxBytes: number): Promise<Uint8Array> {
  const body = await boundedBody(response.body, maxBytes).catch((cause: unknown) => {
    throw new VoiceError('voice_unreachable', t`the engine broke off`, { cause });
  });
  if (body !== undefined) return body;
  throw new VoiceError('voice_malformed', t`the engine answered too much`);
}

const PING_MS = 10_000;

/** Whether the server responds and accepts the key; other statuses do not count. */
export async function pingEngine(
  { apiBase, apiKey, proxy = '' }: EngineAccess,
  clock: Clock,
): Promise<void> {
  const headers = apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` };
  const ask = (signal: AbortSignal) =>
    fetchThrough(proxy)(`${apiBase}/models`, { headers, redirect: 'error', signal });
  const unlimited = new AbortController().signal;
  const response = await withDeadline(clock, PING_MS, tooSlow, unlimited, ask).catch(
    (cause: unknown) => {
      throw unreachable(cause);
    },
  );
  await response.body?.cancel();
  if (REFUSALS[response.status] === KEY_REFUSED) throw refusal(response.status);
}
