// A strict model server on loopback, speaking OpenAI chat completions and Anthropic Messages. It is
// driven by a script or a function; an unscripted call and left-over script fail `assertDone`.

import { EventEmitter, once, setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { anthropicDialect } from './llm-server-anthropic.ts';
import { createPromptCache, type PromptCache } from './llm-server-cache.ts';
import { openaiDialect } from './llm-server-openai.ts';
import { type Dialect, type LlmReply, type LlmRequest, Refusal } from './llm-server-reply.ts';
import type { Json } from './llm-server-strict.ts';
import { refuseTools, refuseUnevenTurns } from './llm-server-text-only.ts';
import { writeReply } from './llm-server-wire.ts';
import { SIDE_PATHS, type SideRoute } from './local-dialects.ts';

export {
  callTools,
  echo,
  fail,
  type LlmReply,
  type LlmRequest,
  say,
} from './llm-server-reply.ts';

export type Responder = (request: LlmRequest) => LlmReply | Promise<LlmReply>;

export type LlmServerOptions = {
  /** Asked of every request; left out = any key is taken. */
  readonly apiKey?: string;
  /** Names served; another name is a 404. Left out = every name is served. */
  readonly models?: readonly string[];
  /** Wait before each answer, milliseconds; for the benchmark. */
  readonly latencyMs?: number;
  /** false: requests are not kept, so that a benchmark's memory stays flat. */
  readonly record?: boolean;
  readonly port?: number;
  /** Replies without `usage` count their input as the services do, with their prompt caches. */
  readonly countsInput?: boolean;
  /** Refuses broken turns, and `no tools` every trace of a tool as well. */
  readonly template?: 'by turns' | 'no tools';
  readonly respond?: Responder;
  /** Answers what is asked beside the models; undefined: this is none of it. */
  readonly side?: SideRoute;
};

export interface LlmServer extends AsyncDisposable {
  /** `http://127.0.0.1:port`; the Anthropic base. */
  readonly url: string;
  /** `url` + `/v1`; the OpenAI base. */
  readonly openaiBase: string;
  readonly requests: readonly LlmRequest[];
  /** What went wrong so far: refused bodies, unscripted calls, unknown paths. */
  readonly complaints: readonly string[];
  /** Appends replies; they are used before the responder is asked. */
  script(...replies: readonly (LlmReply | Responder)[]): void;
  respond(responder: Responder): void;
  /** Resolves when this many requests came in, counted from the start. */
  received(count: number): Promise<void>;
  /** Fails on left-over script, and on complaints unless they were read by `takeComplaints`. */
  assertDone(): void;
  /** Hands over the complaints a test provoked on purpose. */
  takeComplaints(): readonly string[];
}

const KEEP_ALIVE_MS = 60_000;

const ROUTES: Readonly<Record<string, Dialect>> = {
  '/v1/chat/completions': openaiDialect,
  '/v1/messages': anthropicDialect,
};

export async function startLlmServer(options: LlmServerOptions = {}): Promise<LlmServer> {
  const simulated = new SimulatedServer(options);
  await simulated.listen();
  return simulated;
}

type Incoming = {
  readonly incoming: IncomingMessage;
  readonly path: string;
  readonly text: string;
  readonly arrivedAt: number;
};

class SimulatedServer implements LlmServer {
  readonly requests: LlmRequest[] = [];
  readonly #options: LlmServerOptions;
  readonly #queue: (LlmReply | Responder)[] = [];
  readonly #arrivals = new EventEmitter();
  readonly #closing = new AbortController();
  readonly #server = createServer((incoming, outgoing) => this.#route(incoming, outgoing));
  readonly #promptCache: PromptCache | undefined;
  #complaints: string[] = [];
  #responder: Responder | undefined;
  #seen = 0;
  #minted = 0;

  constructor(options: LlmServerOptions) {
    this.#options = options;
    this.#responder = options.respond;
    this.#promptCache = options.countsInput === true ? createPromptCache() : undefined;
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS;
    setMaxListeners(0, this.#closing.signal);
  }

  async listen(): Promise<void> {
    this.#server.listen(this.#options.port ?? 0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get openaiBase(): string {
    return `${this.url}/v1`;
  }

  get complaints(): readonly string[] {
    return this.#complaints;
  }

  script(...replies: readonly (LlmReply | Responder)[]): void {
    this.#queue.push(...replies);
  }

  respond(responder: Responder): void {
    this.#responder = responder;
  }

  async received(count: number): Promise<void> {
    while (this.#seen < count) await once(this.#arrivals, 'request');
  }

  assertDone(): void {
    const left = this.#queue.length;
    const leftover = left === 0 ? [] : [`${left} scripted replies were not used`];
    const problems = [...this.#complaints, ...leftover];
    if (problems.length > 0) throw new Error(`model server: ${problems.join('; ')}`);
  }

  takeComplaints(): readonly string[] {
    const taken = this.#complaints;
    this.#complaints = [];
    return taken;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return;
    this.#closing.abort();
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  #route(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const path = (incoming.url ?? '').split('?')[0] ?? '';
    bodyOf(incoming)
      .then((text) => {
        const arrivedAt = performance.timeOrigin + performance.now();
        return this.#answer({ incoming, path, text, arrivedAt }, outgoing);
      })
      .catch(() => outgoing.destroy());
  }

  async #answer(request: Incoming, outgoing: ServerResponse): Promise<void> {
    const { incoming, path, text, arrivedAt } = request;
    const { method = '' } = incoming;
    const body = text === '' ? {} : JSON.parse(text);
    const beside = await this.#options.side?.({ method, path, body });
    if (beside !== undefined) {
      outgoing.writeHead(beside.status, { 'content-type': 'application/json', ...beside.headers });
      return void outgoing.end(JSON.stringify(beside.body));
    }
    const dialect = ROUTES[path];
    if (incoming.method === 'POST' && dialect !== undefined) {
      this.#complete(dialect, { incoming, body, arrivedAt }, outgoing).catch((error: unknown) =>
        this.#refuse(dialect, error, outgoing),
      );
    } else if (incoming.method === 'GET' && path === '/v1/models') {
      this.#listModels(outgoing);
    } else if (SIDE_PATHS.includes(path)) {
      outgoing.writeHead(404).end();
    } else {
      this.#complaints.push(`unknown call: ${incoming.method} ${path}`);
      outgoing.writeHead(404).end();
    }
  }

  async #complete(
    dialect: Dialect,
    { incoming, body, arrivedAt }: Omit<Incoming, 'path' | 'text'> & { readonly body: Json },
    outgoing: ServerResponse,
  ) {
    const { apiKey, models, latencyMs, template } = this.#options;
    dialect.authenticate(incoming.headers, apiKey);
    const read = dialect.read(body);
    if (template === 'no tools') refuseTools(body);
    if (template !== undefined) refuseUnevenTurns(body);
    if (models !== undefined && !models.includes(read.model)) {
      const message = `The model '${read.model}' does not exist`;
      throw new Refusal(message, { status: 404, code: 'model_not_found' });
    }
    const { headers } = incoming;
    const abandoned = abandonedBy(outgoing);
    const request: LlmRequest = { ...read, headers, body, arrivedAt, abandoned };
    this.#noteArrival(request);
    const counted = this.#promptCache?.(request);
    const scripted = await this.#nextReply(request);
    const usage = scripted.usage ?? (counted && { ...counted, output: 5 });
    const reply = usage === undefined ? scripted : { ...scripted, usage };
    if (latencyMs !== undefined) await delay(latencyMs);
    const callIds = () => `call_${++this.#minted}`;
    const closing = this.#closing.signal;
    await writeReply({ dialect, reply, request, callIds, outgoing, closing });
  }

  #noteArrival(request: LlmRequest) {
    this.#seen += 1;
    if (this.#options.record !== false) this.requests.push(request);
    this.#arrivals.emit('request');
  }

  #nextReply(request: LlmRequest): LlmReply | Promise<LlmReply> {
    const scripted = this.#queue.shift() ?? this.#responder;
    if (scripted === undefined) {
      this.#complaints.push(`unscripted call: ${request.lastUserText.slice(0, 80)}`);
      throw new Refusal('unscripted call', { status: 418 });
    }
    return typeof scripted === 'function' ? scripted(request) : scripted;
  }

  #refuse(dialect: Dialect, error: unknown, outgoing: ServerResponse) {
    const refusal = error instanceof Refusal ? error : new Refusal(String(error), { status: 500 });
    const { status, code, message } = refusal;
    if (status === 400 || status === 500) this.#complaints.push(message);
    if (outgoing.headersSent) return void outgoing.destroy();
    outgoing.writeHead(status, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify(dialect.errorBody(status, code, message)));
  }

  #listModels(outgoing: ServerResponse) {
    const data = (this.#options.models ?? ['sim-1']).map((id) => ({ id, object: 'model' }));
    outgoing.writeHead(200, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify({ object: 'list', data }));
  }
}

function abandonedBy(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) resolve();
    });
  });
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}
