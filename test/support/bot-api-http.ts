// The HTTP side of the simulated Telegram: reads requests, lets the fault script strike before or
// after a request takes effect, and answers.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { isRecord } from './bot-api-buttons.ts';
import type { Call, Fault, FaultScript } from './bot-api-faults.ts';
import { nowMs } from './bot-api-ledger.ts';
import type { Answer, Payload } from './bot-api-methods.ts';

const MAX_BODY_BYTES = 1_000_000;
const KEEP_ALIVE_MS = 60_000;

export type HttpFrontOptions = {
  readonly faults: FaultScript;
  onCall(call: Call): void;
  /** `gone` aborts when the client hangs up. */
  answer(request: {
    readonly token: string;
    readonly method: string;
    readonly payload: Payload;
    readonly gone: AbortSignal;
  }): Promise<Answer> | Answer;
};

export class HttpFront {
  readonly #options: HttpFrontOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(options: HttpFrontOptions) {
    this.#options = options;
    this.#server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, '127.0.0.1', resolve);
    });
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const payload = await readPayload(request);
    const [, token = '', method = ''] = /^\/bot([^/]+)\/(\w+)$/.exec(request.url ?? '') ?? [];
    const call: Call = { method, payload, at: nowMs() };
    this.#options.onCall(call);
    const fault = this.#options.faults.next(call);
    if (fault !== undefined && (await strike(fault, 'before', response))) return;
    const answer = await this.#options.answer({ token, method, payload, gone: gone.signal });
    if (fault !== undefined && (await strike(fault, 'after', response))) return;
    respond(response, answer.ok ? 200 : answer.error_code, JSON.stringify(answer));
  }
}

/** Whether the fault has taken the place of the answer. */
async function strike(fault: Fault, stage: 'before' | 'after', response: ServerResponse) {
  if (fault.kind === 'slow') {
    if (stage === 'before') await new Promise((resolve) => setTimeout(resolve, fault.ms));
    return false;
  }
  if ((fault.kind === 'error' ? 'before' : fault.stage) !== stage) return false;
  if (fault.kind === 'error') {
    const { code, description, parameters } = fault;
    const body = { ok: false, error_code: code, description, parameters };
    respond(response, code, JSON.stringify(body));
  }
  if (fault.kind === 'drop') response.socket?.resetAndDestroy();
  if (fault.kind === 'html') respond(response, fault.status, '<html><h1>Bad Gateway</h1></html>');
  if (fault.kind === 'not_json') respond(response, 200, '{"ok":tru');
  return true;
}

function respond(response: ServerResponse, status: number, body: string) {
  if (response.destroyed) return;
  response.writeHead(status, {
    'content-type': body.startsWith('<') ? 'text/html' : 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

async function readPayload(request: IncomingMessage): Promise<Payload> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new Error('a request larger than Telegram takes');
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString('utf8');
  const parsed: unknown = text === '' ? {} : JSON.parse(text);
  return isRecord(parsed) ? parsed : {};
}
