// A strict model server on loopback, speaking OpenAI chat completions and Anthropic Messages. It is
// driven by a script or a function; an unscripted call and left-over script fail `assertDone`.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { anthropicDialect } from './llm-server-anthropic.ts';
import { openaiDialect } from './llm-server-openai.ts';
import { type Dialect, type LlmReply, type LlmRequest, Refusal } from './llm-server-reply.ts';
import { writeReply } from './llm-server-wire.ts';

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
  readonly respond?: Responder;
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

const ROUTES: Readonly<Record<string, Dialect>> = {
  '/v1/chat/completions': openaiDialect,
  '/v1/messages': anthropicDialect,
};

export async function startLlmServer(options: LlmServerOptions = {}): Promise<LlmServer> {
  const requests: LlmRequest[] = [];
  const queue: (LlmReply | Responder)[] = [];
  const arrivals = new Set<() => void>();
  const closing = new AbortController();
  let complaints: string[] = [];
  let responder = options.respond;
  let seen = 0;
  let minted = 0;

  function nextReply(request: LlmRequest): LlmReply | Promise<LlmReply> {
    const scripted = queue.shift() ?? responder;
    if (scripted === undefined) {
      complaints.push(`unscripted call: ${request.lastUserText.slice(0, 80)}`);
      throw new Refusal('unscripted call', { status: 418 });
    }
    return typeof scripted === 'function' ? scripted(request) : scripted;
  }

  function noteArrival(request: LlmRequest) {
    seen += 1;
    if (options.record !== false) requests.push(request);
    for (const arrived of arrivals) arrived();
  }

  async function complete(dialect: Dialect, incoming: IncomingMessage, outgoing: ServerResponse) {
    const body = JSON.parse(await bodyOf(incoming)) as Record<string, unknown>;
    dialect.authenticate(incoming.headers, options.apiKey);
    const read = dialect.read(body);
    if (options.models !== undefined && !options.models.includes(read.model)) {
      const message = `The model '${read.model}' does not exist`;
      throw new Refusal(message, { status: 404, code: 'model_not_found' });
    }
    const abandoned = new Promise<void>((resolve) => {
      outgoing.once('close', () => {
        if (!outgoing.writableFinished) resolve();
      });
    });
    const request: LlmRequest = { ...read, headers: incoming.headers, body, abandoned };
    noteArrival(request);
    const reply = await nextReply(request);
    if (options.latencyMs !== undefined) await delay(options.latencyMs);
    const callIds = () => `call_${++minted}`;
    await writeReply({ dialect, reply, request, callIds, outgoing, closing: closing.signal });
  }

  function refuse(dialect: Dialect, error: unknown, outgoing: ServerResponse) {
    const refusal = error instanceof Refusal ? error : new Refusal(String(error), { status: 500 });
    if (refusal.status === 400 || refusal.status === 500) complaints.push(refusal.message);
    if (outgoing.headersSent) return void outgoing.destroy();
    const body = dialect.errorBody(refusal.status, refusal.code, refusal.message);
    outgoing.writeHead(refusal.status, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify(body));
  }

  const server = createServer((incoming, outgoing) => {
    const path = (incoming.url ?? '').split('?')[0] ?? '';
    const dialect = ROUTES[path];
    if (incoming.method === 'POST' && dialect !== undefined) {
      complete(dialect, incoming, outgoing).catch((error: unknown) =>
        refuse(dialect, error, outgoing),
      );
      return;
    }
    if (incoming.method === 'GET' && path === '/v1/models') {
      const data = (options.models ?? ['sim-1']).map((id) => ({ id, object: 'model' }));
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      outgoing.end(JSON.stringify({ object: 'list', data }));
      return;
    }
    complaints.push(`unknown call: ${incoming.method} ${path}`);
    outgoing.writeHead(404).end();
  });
  server.keepAliveTimeout = 60_000;
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url,
    openaiBase: `${url}/v1`,
    requests,
    get complaints() {
      return complaints;
    },
    script: (...replies) => void queue.push(...replies),
    respond(next) {
      responder = next;
    },
    async received(count) {
      while (seen < count) {
        await new Promise<void>((resolve) => {
          const arrived = () => {
            arrivals.delete(arrived);
            resolve();
          };
          arrivals.add(arrived);
        });
      }
    },
    assertDone() {
      const leftover = queue.length === 0 ? [] : [`${queue.length} scripted replies were not used`];
      const problems = [...complaints, ...leftover];
      if (problems.length > 0) throw new Error(`model server: ${problems.join('; ')}`);
    },
    takeComplaints() {
      const taken = complaints;
      complaints = [];
      return taken;
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}
