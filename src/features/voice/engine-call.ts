// One request to an audio server, with one more try where that can help, within a deadline. The
// server is the owner's own choice; its key is in no error, and nothing it answers with is repeated.

import type { Clock } from '../../lib/time/clock.ts';
import type { EngineAccess } from './rules/voice-engine.ts';
import { VoiceError } from './voice.ts';

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
