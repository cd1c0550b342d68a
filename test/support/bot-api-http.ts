// The HTTP side of the simulated Telegram: reads requests, lets the fault script strike before or
// after a request takes effect, and answers.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { isRecord } from './bot-api-buttons.ts';
import type { Call, Fault, FaultScript } from './bot-api-faults.ts';
import { nowMs } from './bot-api-ledger.ts';
import type { Answer, Payload } from './bot-api-methods.ts';

const MAX_BODY_BYTES = 1_000_000;
/** A file of 50 MB and the fields around it. */
const MAX_FORM_BYTES = 51_000_000;
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
  /** The file behind a path. */
  download(token: string, path: string): Buffer | undefined;
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
    const download = /^\/file\/bot([^/]+)\/(.+)$/.exec(request.url ?? '');
    if (download !== null) return this.#download(download[1] ?? '', download[2] ?? '', response);
    const [, token = '', method = ''] = /^\/bot([^/]+)\/(\w+)$/.exec(request.url ?? '') ?? [];
    const call: Call = { method, payload, at: nowMs() };
    this.#options.onCall(call);
    const fault = this.#options.faults.next(call);
    if (fault !== undefined && (await strike(fault, 'before', response))) return;
    const answer = await this.#options.answer({ token, method, payload, gone: gone.signal });
    if (fault !== undefined && (await strike(fault, 'after', response))) return;
    respond(response, answer.ok ? 200 : answer.error_code, JSON.stringify(answer));
  }

  async #download(token: string, path: string, response: ServerResponse): Promise<void> {
    const call: Call = { method: 'file', payload: { path }, at: nowMs() };
    this.#options.onCall(call);
    const fault = this.#options.faults.next(call);
    if (fault !== undefined && (await strike(fault, 'before', response))) return;
    const content = this.#options.download(token, path);
    if (content === undefined) return respond(response, 404, '{"ok":false,"error_code":404}');
    response.writeHead(200, { 'content-length': content.length });
    if (fault?.kind !== 'drop') return void response.end(content);
    response.write(content.subarray(0, content.length / 2));
    setImmediate(() => response.socket?.resetAndDestroy());
  }
}

/** The fields of a form; those that are files as they came. */
async function readForm(body: Buffer, contentType: string): Promise<Payload> {
  const form = await new Response(new Uint8Array(body), {
    headers: { 'content-type': contentType },
  }).formData();
  const fields = [...form].map(async ([name, value]) => {
    if (typeof value === 'string') return [name, fieldValue(value)] as const;
    const content = Buffer.from(await value.arrayBuffer());
    return [name, { name: value.name, mimeType: value.type, content }] as const;
  });
  return Object.fromEntries(await Promise.all(fields));
}

/** Numbers, truth values and structures are JSON in a form; any other text is itself. */
function fieldValue(text: string): unknown {
  return /^(?:-?\d+|true|false|[[{].*)$/s.test(text) ? JSON.parse(text) : text;
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
  const type = request.headers['content-type'] ?? '';
  const isForm = type.startsWith('multipart/form-data');
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > (isForm ? MAX_FORM_BYTES : MAX_BODY_BYTES))
      throw new Error('a request larger than Telegram takes');
    chunks.push(chunk);
  }
  if (isForm) return readForm(Buffer.concat(chunks), type);
  const text = Buffer.concat(chunks).toString('utf8');
  const parsed: unknown = text === '' ? {} : JSON.parse(text);
  return isRecord(parsed) ? parsed : {};
}
