// An embedding server on loopback as OpenAI describes it (API reference, Embeddings), strict about key,
// fields and sizes. Its vectors are a bag of hashed words, where words of one meaning are one word.

import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { closed, portOf } from './listening.ts';

export const EMBEDDING_KEY = 'sk-embedding-key-1234567890';
/** OpenAI: inputs of one request, and tokens of each, here at three characters. */
const MAX_INPUTS = 2048;
const MAX_INPUT_CHARS = 3 * 8192;
const FIELDS = ['model', 'input', 'encoding_format', 'dimensions'];
const PLACES_PER_WORD = 4;

export type EmbeddingFault =
  | number
  | 'hang'
  | 'redirect'
  | { readonly status: number; readonly retryAfter: string }
  | { readonly body: string };

export type EmbeddingServer = AsyncDisposable & {
  readonly base: string;
  /** The inputs of every answered request. */
  readonly inputs: readonly (readonly string[])[];
  readonly requestCount: () => number;
  /** What no client may do. */
  readonly complaints: readonly string[];
  /** Answers such inputs so instead; `hang`: not at all. */
  faultOf(inputs: readonly string[]): EmbeddingFault | undefined;
  /** A text that holds this is refused. */
  refuses: string | undefined;
  dimensions: number;
  /** Until it resolves, answers wait. */
  gate: Promise<void> | undefined;
};

/** Words that mean the same here. */
const MEANINGS: readonly string[] = [
  'doctor physician medic surgeon',
  'car automobile vehicle',
  'buy purchase acquire bought obtain',
  'begin start commence opened founded established',
  'ship vessel boat steamer',
  'king monarch ruler sovereign',
  'illness disease sickness ailment',
  'remedy cure treatment medicine heal',
  'ocean sea',
  'child kid infant baby',
  'teacher instructor tutor',
  'house home dwelling residence flat',
  'money cash funds payment pay owe due price cost',
  'rent lease landlord',
  'meal dinner supper food eat dish',
  'fast quick rapid speed swift',
  'fire blaze burn flame',
  'war conflict battle fight',
  'stone rock boulder',
  'find discover locate detect found',
  'build construct erect made make',
  'die death perish dead',
  'travel journey voyage trip',
  'animal beast creature',
  'tree trunk timber wood forest',
  'write author wrote written pen',
  'city town municipality capital',
  'sleep slumber rest dormant hibernate',
  'cold chilly freezing frost ice',
  'hot warm heat boiling boil',
  'mountain peak summit alp',
  'teach educate school lesson',
  'rain shower precipitation drizzle',
  'dentist tooth teeth',
  'dog puppy hound',
  'bird fowl',
  'small tiny little',
  'tall high height',
  'planet world earth globe',
  'music melody song tune',
  'birthday born birth',
];
const STOP = new Set(
  'a an and are as at be been by can did do does for from has have he her his how i in is it its me my of on or our she that the their them they this to was we were what when where which who why will with you your there than then more most into not no'.split(
    ' ',
  ),
);

const stem = (word: string) => word.replace(/(?:ies|ing|ed|es|s|e|y)$/, '');
const MEANING = new Map(
  MEANINGS.flatMap((line, at) => line.split(' ').map((word) => [stem(word), `meaning ${at}`])),
);

/** Deterministic, of length 1. */
export function embeddingOf(text: string, dimensions: number): readonly number[] {
  const vector = new Array<number>(dimensions).fill(0);
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) {
    if (STOP.has(word)) continue;
    const hash = createHash('sha256')
      .update(MEANING.get(stem(word)) ?? stem(word))
      .digest();
    for (let place = 0; place < PLACES_PER_WORD; place += 1) {
      const at = hash.readUInt32LE(4 * place) % dimensions;
      vector[at] = (vector[at] ?? 0) + ((hash[20 + place] ?? 0) % 2 === 0 ? 1 : -1);
    }
  }
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}

export async function startEmbeddingServer(key = EMBEDDING_KEY): Promise<EmbeddingServer> {
  const inputs: (readonly string[])[] = [];
  const complaints: string[] = [];
  let requests = 0;
  const state = {
    faultOf: (_inputs: readonly string[]): EmbeddingFault | undefined => undefined,
    refuses: undefined as string | undefined,
    dimensions: 256,
    gate: undefined as Promise<void> | undefined,
  };
  type Answer = { status: number; body: string; headers?: Readonly<Record<string, string>> };
  const refuse = (status: number, message: string): Answer => ({
    status,
    body: JSON.stringify({ error: { message, type: 'invalid_request_error' } }),
  });
  const complain = (status: number, message: string): Answer => {
    complaints.push(message);
    return refuse(status, message);
  };

  function embed(body: string): Answer {
    const asked = JSON.parse(body) as Record<string, unknown>;
    const strange = Object.keys(asked).filter((field) => !FIELDS.includes(field));
    if (strange.length > 0) return complain(400, `unknown fields ${strange.join(', ')}`);
    const { model, input, encoding_format: format, dimensions = state.dimensions } = asked;
    if (typeof model !== 'string' || model === '') return complain(400, 'no model');
    if (format !== 'float') return complain(400, `format ${String(format)}`);
    const texts = Array.isArray(input) ? input.filter((text) => typeof text === 'string') : [];
    if (texts.length === 0 || texts.length > MAX_INPUTS) return complain(400, 'inputs');
    if (texts.length !== (input as unknown[]).length) return complain(400, 'inputs of other types');
    if (texts.some((text) => text === '' || text.length > MAX_INPUT_CHARS)) {
      return complain(400, 'an input is empty or too long');
    }
    const { refuses } = state;
    if (refuses !== undefined && texts.some((text) => text.includes(refuses))) {
      return refuse(400, 'refused');
    }
    inputs.push(texts);
    const data = texts.map((text, index) => ({
      object: 'embedding',
      index,
      embedding: embeddingOf(text, Number(dimensions)),
    }));
    const tokens = texts.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0);
    const usage = { prompt_tokens: tokens, total_tokens: tokens };
    return { status: 200, body: JSON.stringify({ object: 'list', data, model, usage }) };
  }

  async function answer(request: IncomingMessage, body: string): Promise<Answer | undefined> {
    await state.gate;
    const fault = state.faultOf(JSON.parse(body).input);
    if (fault === 'hang') return undefined;
    if (fault === 'redirect') {
      return { status: 307, body: '', headers: { location: 'http://127.0.0.1:1/' } };
    }
    if (typeof fault === 'number') return refuse(fault, `simulated, with ${key} in it`);
    if (fault !== undefined && 'body' in fault) return { status: 200, body: fault.body };
    if (fault !== undefined) {
      const headers = { 'retry-after': fault.retryAfter };
      return { ...refuse(fault.status, 'slow down'), headers };
    }
    if (request.headers.authorization !== `Bearer ${key}`) return refuse(401, 'Incorrect API key');
    if (request.method !== 'POST' || request.url !== '/v1/embeddings') {
      return complain(404, `${request.method} ${request.url}`);
    }
    if (request.headers['content-type'] !== 'application/json') return complain(415, 'no JSON');
    return embed(body);
  }

  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    requests += 1;
    const given = await answer(request, Buffer.concat(parts).toString()).catch((error: unknown) =>
      complain(400, String(error)),
    );
    if (given === undefined) return;
    const { status, body, headers } = given;
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  });
  const port = await portOf(server);

  return Object.assign(state, {
    base: `http://127.0.0.1:${port}/v1`,
    inputs,
    complaints,
    requestCount: () => requests,
    async [Symbol.asyncDispose]() {
      await closed(server);
    },
  });
}
