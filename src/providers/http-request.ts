// The HTTP request of a model call, and its response: server-sent events, or the vendor's error.
// Without the vendors' packages and without `fetch`: their work for each piece of a stream is up to
// 30 % of the processor time of a turn, and loading them delays the first answer (ADR 0027).

import type { ClientRequest, Agent as HttpAgent, IncomingMessage } from 'node:http';
import { ProviderError } from '../kernel/message/errors.ts';
import { parseJson } from '../lib/json/json.ts';
import { readProxy } from '../lib/net/address-rules.ts';
import { routed } from '../lib/net/proxies.ts';

/** The part of a `Response` that is used. */
export type Answer = {
  readonly status: number;
  readonly headers: Pick<Headers, 'get'>;
  readonly body: AsyncIterable<Uint8Array> | null;
  /** The body for a reader that may know its end before the connection does; default: `body`. */
  readonly stream?: (isOver: () => boolean) => AsyncIterable<Uint8Array>;
};

export type Asked = {
  readonly method: 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly signal: AbortSignal;
  readonly redirect: 'manual';
};

export type BodyParts = readonly Uint8Array[];

/** With its body in parts, which are not copied into one. */
export type Posted = Omit<Asked, 'body'> & { readonly body: BodyParts };

/** Uses Node's own client, which keeps connections for the next call. */
function post(url: string, asked: Posted, agent?: HttpAgent): Promise<Answer> {
  const { method, body, signal } = asked;
  const length = body.reduce((sum, part) => sum + part.length, 0);
  const headers = { ...asked.headers, 'content-length': length };
  const { request } = process.getBuiltinModule(
    new URL(url).protocol === 'https:' ? 'node:https' : 'node:http',
  );
  return new Promise((resolve, reject) => {
    const call = request(url, { method, headers, agent });
    // Ended without an error: the option `signal` has one thrown where nobody listens, if the connection is
    // just going back to its pool.
    const end = () => void call.destroy();
    signal.addEventListener('abort', end, { once: true });
    call.once('close', () => signal.removeEventListener('abort', end));
    call.on('error', reject);
    call.once('response', (answer) => {
      // A reader gets the error itself; without one it must not end the process.
      answer.on('error', () => undefined);
      const get = (name: string) => answer.headers[name]?.toString() ?? null;
      const stream = (isOver: () => boolean) => readUntil(isOver, answer, call);
      resolve({ status: answer.statusCode ?? 0, headers: { get }, body: answer, stream });
    });
    for (const part of body) call.write(part);
    call.end();
  });
}

/** How long a response may stand still behind its answer. */
const REST_MS = 5000;

/**
 * A reader that stops ends the request, unless it has the whole answer: then what follows is skipped,
 * so that the connection serves the next call.
 */
function readUntil(
  isOver: () => boolean,
  answer: IncomingMessage,
  call: ClientRequest,
): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const bytes = answer.iterator({ destroyOnReturn: false });
      return {
        next: () => bytes.next(),
        async return() {
          await bytes.return?.();
          if (isOver()) {
            call.setTimeout(REST_MS, () => void call.destroy());
            answer.resume();
          } else {
            call.destroy();
          }
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/** As Node's global agent has it. */
const AGENT = { keepAlive: true, scheduling: 'lifo', timeout: 5000 } as const;

/** `post` through the proxy of a setting. */
export function postThrough(proxy: string, server: string): typeof post {
  if (readProxy(proxy) === undefined) return post;
  const { Agent } = process.getBuiltinModule(
    URL.parse(server)?.protocol === 'https:' ? 'node:https' : 'node:http',
  );
  const agent = routed(new Agent(AGENT), proxy);
  return (url, asked) => post(url, asked, agent);
}

// The response.

/** A vendor's error response. */
export class VendorError extends Error {
  override readonly name = 'VendorError';
  /** Absent: an event inside of a stream. */
  readonly status: number | undefined;
  readonly headers: Answer['headers'];
  /** As received: parsed JSON, or other text. */
  readonly said: unknown;

  constructor(said: unknown, { headers }: Answer, status?: number) {
    const text = typeof said === 'string' ? said : JSON.stringify(said);
    super([status, text].join(' ').trim());
    this.status = status;
    this.headers = headers;
    this.said = said;
  }
}

/** Of an error body. */
const MAX_ERROR_CHARS = 100_000;

/** @throws VendorError; ProviderError `redirected`: a request contains private text and keys */
export async function refuse(answer: Answer, url: string, provider: string): Promise<never> {
  const { status, headers } = answer;
  if (status >= 300 && status < 400) {
    const to = targetOf(headers.get('location'), url);
    const failure = { kind: 'redirected', to } as const;
    throw new ProviderError(`the server redirects to ${to}`, { failure, provider, model: '' });
  }
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of answer.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > MAX_ERROR_CHARS) break;
  }
  throw new VendorError(parseJson(text) ?? text, answer, status);
}

/** Only the origin: the rest may contain anything. */
function targetOf(location: string | null, from: string): string {
  const target = location === null ? undefined : URL.parse(location, from);
  return target?.origin ?? 'another address';
}

/** A carriage return at the very end may be half of a line end. */
const LINE_END = /\r\n|\n|\r(?!$)/;

/** The last event: OpenAI's has this data, Anthropic's this name. */
const DONE = '[DONE]';
const MESSAGE_STOP = 'message_stop';

/**
 * The data of server-sent events up to the last one of the answer; those that came in one piece of
 * the body together. @throws VendorError
 */
export async function* piecesOf<Piece>(
  answer: Answer,
): AsyncGenerator<readonly Piece[], void, void> {
  const decoder = new TextDecoder();
  let line = '';
  let event = '';
  let data = '';
  let isOver = false;

  function ended(): readonly Piece[] {
    const text = data;
    const isError = event === 'error';
    const isDone = text.startsWith(DONE);
    isOver ||= isDone || event === MESSAGE_STOP;
    data = '';
    event = '';
    if (text === '' || isDone) return [];
    if (isError) throw new VendorError(parseJson(text) ?? text, answer);
    const piece = JSON.parse(text);
    if (piece?.error) throw new VendorError(piece, answer);
    return [piece];
  }

  function read(text: string): readonly Piece[] {
    if (text === '') return ended();
    const value = /: ?/.exec(text);
    const field = text.slice(0, value?.index);
    const rest = value === null ? '' : text.slice(value.index + value[0].length);
    if (field === 'data') data += data === '' ? rest : `\n${rest}`;
    else if (field === 'event') event = rest;
    return [];
  }

  for await (const bytes of answer.stream?.(() => isOver) ?? answer.body ?? []) {
    const text = decoder.decode(bytes, { stream: true });
    const hasEnd = text.includes('\n') || text.includes('\r') || line.endsWith('\r');
    line += text;
    if (!hasEnd) continue;
    const lines = line.split(LINE_END);
    line = lines.pop() ?? '';
    yield lines.flatMap(read);
    if (isOver) return;
  }
}
