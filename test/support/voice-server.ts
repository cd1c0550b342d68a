// An audio server on loopback as OpenAI describes it (API reference, Audio): transcriptions of files
// and speech of texts, strict about key, fields and size. What is said in a sound is its own text.

import { createServer, type IncomingMessage } from 'node:http';
import { closed, portOf } from './listening.ts';

export const VOICE_KEY = 'sk-voice-engine-key-1234567890';
/** Largest file (OpenAI, Speech to text). */
const MAX_FILE_BYTES = 25 * 1024 * 1024;
const ENDINGS = /\.(?:flac|m4a|mp3|mp4|mpeg|mpga|oga|ogg|wav|webm)$/;
const MODELS = ['whisper-1', 'whisper-large-v3-turbo', 'gpt-4o-mini-transcribe'];
const MAX_INPUT_CHARS = 4096;

export type HeardSound = {
  readonly name: string;
  readonly type: string;
  readonly content: Buffer;
  readonly model: string;
  readonly language: string | undefined;
};

export type SpokenText = {
  readonly input: string;
  readonly format: string;
  readonly voice: string;
};

export type VoiceFault = number | 'hang' | 'redirect' | { readonly body: string | Buffer };

export type VoiceServer = AsyncDisposable & {
  readonly base: string;
  readonly heard: readonly HeardSound[];
  readonly spoken: readonly SpokenText[];
  /** Every request, answered or not. */
  requestCount(): number;
  /** What no client may do. */
  readonly complaints: readonly string[];
  /** Answers the next ones so instead; `hang`: not at all, a body: with status 200. */
  faults: VoiceFault[];
  /** Seconds that transcriptions say they took, as it stands in their JSON. */
  duration: string;
  /** Until a promise in it resolves, answers wait. */
  gate: Promise<void> | undefined;
  /** Resolves with the n-th request. */
  reached(count: number): Promise<void>;
};

/** An OGG page with Opus in it as far as anybody looks (RFC 7845, section 5.1), then the words. */
export function voiceNote(words: string): Buffer {
  const page = Buffer.alloc(28);
  page.write('OggS', 0);
  page[5] = 2;
  page[26] = 1;
  page[27] = 19;
  const head = Buffer.alloc(19);
  head.write('OpusHead', 0);
  head[8] = 1;
  head[9] = 1;
  return Buffer.concat([page, head, Buffer.from(words)]);
}

export const wordsIn = (sound: Uint8Array) => Buffer.from(sound).subarray(47).toString('utf8');

export async function startVoiceServer(): Promise<VoiceServer> {
  const heard: HeardSound[] = [];
  const spoken: SpokenText[] = [];
  const complaints: string[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  let requests = 0;
  const state = {
    faults: [] as VoiceFault[],
    duration: '12',
    gate: undefined as Promise<void> | undefined,
  };

  type Answer = { status: number; body: string | Buffer; type?: string; location?: string };
  const refuse = (status: number, message: string): Answer => {
    if (status === 400) complaints.push(message);
    return { status, body: JSON.stringify({ error: { message, type: 'invalid_request_error' } }) };
  };

  async function transcribe(request: IncomingMessage, body: Buffer): Promise<Answer> {
    const type = request.headers['content-type'] ?? '';
    if (!/^multipart\/form-data; ?boundary=/.test(type)) return refuse(400, `not a form: ${type}`);
    const form = await new Response(new Uint8Array(body), {
      headers: { 'content-type': type },
    }).formData();
    const known = ['file', 'model', 'response_format', 'language'];
    const strange = [...form.keys()].filter((key) => !known.includes(key));
    if (strange.length > 0) return refuse(400, `unknown fields ${strange.join(', ')}`);
    const file = form.get('file');
    const model = String(form.get('model'));
    const format = String(form.get('response_format'));
    if (!(file instanceof File) || !ENDINGS.test(file.name)) return refuse(400, 'no sound file');
    if (file.size > MAX_FILE_BYTES) return refuse(413, 'Maximum content size limit exceeded');
    if (!MODELS.includes(model)) return refuse(400, `no model ${model}`);
    if (model.startsWith('gpt-') && format === 'verbose_json') return refuse(400, 'bad format');
    const content = Buffer.from(await file.arrayBuffer());
    const language = form.get('language') === null ? undefined : String(form.get('language'));
    heard.push({ name: file.name, type: file.type, content, model, language });
    const text = ` ${wordsIn(content)}`;
    const told = /\p{Script=Cyrillic}/u.test(text) ? 'russian' : 'english';
    const verbose = { task: 'transcribe', language: told, text, segments: [] };
    const answer = format === 'verbose_json' ? verbose : { text };
    const written = JSON.stringify(answer);
    const length = format === 'verbose_json' ? `,"duration":${state.duration}}` : '}';
    return { status: 200, body: written.slice(0, -1) + length };
  }

  function speak(body: Buffer): Answer {
    const asked: unknown = JSON.parse(body.toString('utf8'));
    if (typeof asked !== 'object' || asked === null) return refuse(400, 'no object');
    const {
      model,
      input,
      voice,
      response_format: format,
      ...rest
    } = asked as Record<string, unknown>;
    if (Object.keys(rest).length > 0) return refuse(400, `unknown ${Object.keys(rest).join()}`);
    if (typeof model !== 'string' || model === '') return refuse(400, 'no model');
    if (typeof input !== 'string' || input === '') return refuse(400, 'nothing to say');
    if (input.length > MAX_INPUT_CHARS) return refuse(400, 'string_above_max_length');
    if (typeof voice !== 'string' || voice === '') return refuse(400, 'no voice');
    spoken.push({ input, voice, format: String(format) });
    const mp3 = Buffer.concat([
      Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, 0]),
      Buffer.from(input),
    ]);
    if (format === 'opus') return { status: 200, body: voiceNote(input), type: 'audio/ogg' };
    if (format === 'mp3') return { status: 200, body: mp3, type: 'audio/mpeg' };
    if (format !== 'wav') return refuse(400, `no format ${format}`);
    return { status: 200, body: Buffer.from(`RIFF....WAVE${input}`), type: 'audio/wav' };
  }

  async function answer(request: IncomingMessage, body: Buffer): Promise<Answer | undefined> {
    const fault = state.faults.shift();
    await state.gate;
    if (fault === 'hang') return undefined;
    if (fault === 'redirect') return { status: 307, body: '', location: 'http://127.0.0.1:1/' };
    if (typeof fault === 'object') return { status: 200, body: fault.body, type: 'audio/ogg' };
    if (fault !== undefined) return refuse(fault, `simulated, with ${VOICE_KEY} in it`);
    if (request.headers.authorization !== `Bearer ${VOICE_KEY}`) {
      return refuse(401, `Incorrect API key provided: ${request.headers.authorization}`);
    }
    if (request.method === 'GET' && request.url === '/v1/models')
      return { status: 200, body: '{"data":[]}' };
    if (request.method !== 'POST') return refuse(405, 'method');
    if (request.url === '/v1/audio/transcriptions') return transcribe(request, body);
    if (request.url === '/v1/audio/speech') return speak(body);
    return refuse(404, 'unknown path');
  }

  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    requests += 1;
    for (const { count, resolve } of waiting) if (requests >= count) resolve();
    const given = await answer(request, Buffer.concat(parts)).catch((error: unknown) =>
      refuse(400, String(error)),
    );
    if (given === undefined) return;
    const { status, body, type = 'application/json', location } = given;
    const to = location === undefined ? {} : { location };
    response.writeHead(status, { 'content-type': type, ...to }).end(body);
  });
  const port = await portOf(server);

  return Object.assign(state, {
    base: `http://127.0.0.1:${port}/v1`,
    heard,
    spoken,
    complaints,
    requestCount: () => requests,
    reached: (count: number) =>
      new Promise<void>((resolve) => {
        if (requests >= count) resolve();
        else waiting.push({ count, resolve });
      }),
    async [Symbol.asyncDispose]() {
      await closed(server);
    },
  });
}
