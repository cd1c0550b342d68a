// The connection to a Bot API server: requests that know whether they can have arrived, kept alive,
// each held to a deadline. The bot's token is part of every address, so none gets into an error.

import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { fieldsOf, integerOf, parseJson } from '../../lib/json/json.ts';
import { nodeHttp } from '../../lib/net/node-http.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { BotCallError } from './failures.ts';

export type LineOptions = {
  readonly token: string;
  readonly apiRoot: string;
  readonly clock: Clock;
};

export type Posting = {
  readonly body: Buffer;
  readonly contentType: string;
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
};

export type Line = {
  /** `https://host:port`, without the token. */
  readonly origin: string;
  /** @throws BotCallError */
  post(method: string, posting: Posting): Promise<{ readonly ok: true; readonly result: never }>;
  /** The file behind a path of getFile; its body is still to be read. @throws BotCallError */
  file(path: string, signal: AbortSignal): Promise<IncomingMessage>;
};

/** A connection idle for longer may be dead without anybody having said so. */
const IDLE_SOCKET_MS = 15_000;
/** More of them would only take open files from others. */
const MAX_IDLE_SOCKETS = 16;
/** Larger than any answer to a method we call (100 updates of at most some 10 kB). */
const MAX_ANSWER_BYTES = 20_000_000;

/** @throws ChannelError for an address that is none */
export function openLine({ token, apiRoot, clock }: LineOptions): Line {
  // Taken apart before the token comes in: an error about an address quotes it.
  const root = parseRoot(apiRoot);
  const isTls = root.protocol === 'https:';
  const agentOptions = {
    keepAlive: true,
    timeout: IDLE_SOCKET_MS,
    maxFreeSockets: MAX_IDLE_SOCKETS,
  };
  const agent = isTls ? new HttpsAgent(agentOptions) : new nodeHttp.Agent(agentOptions);
  const request = isTls ? httpsRequest : nodeHttp.request;
  const hostname = root.hostname.replace(/^\[|\]$/g, '');
  const target = { hostname, port: root.port, agent };
  const base = root.pathname.replace(/\/+$/, '');
  const bot = `bot${encodeURI(token.trim())}`;
  return {
    origin: root.origin,
    async post(method, { body, contentType, deadlineMs, signal }) {
      const headers = { 'content-type': contentType, 'content-length': body.length };
      const path = `${base}/${bot}/${method}`;
      const call = request({ ...target, method: 'POST', path, headers });
      const answer = await exchange(call, body, { method, clock, deadlineMs, signal });
      return parseAnswer(method, answer);
    },
    file(path, signal) {
      const call = request({ ...target, method: 'GET', path: `${base}/file/${bot}/${path}` });
      return opened(call, signal);
    },
  };
}

/** The answer's head; a file that is not there is refused with its status. */
function opened(call: ClientRequest, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => {
      call.destroy();
      reject(new BotCallError('file', { kind: 'unanswered', reason }));
    };
    const onAbort = () => fail('given up');
    call.on('error', (error) => fail(codeOf(error)));
    call.on('close', () => signal.removeEventListener('abort', onAbort));
    call.on('response', (response) => {
      const code = response.statusCode ?? 0;
      if (code === 200) return resolve(response);
      call.destroy();
      reject(new BotCallError('file', { kind: 'refused', code, description: 'no such file' }));
    });
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    else call.end();
  });
}

function parseRoot(apiRoot: string): URL {
  if (URL.canParse(apiRoot) && /^https?:/i.test(apiRoot)) return new URL(apiRoot);
  const problem = 'channels.telegram.apiRoot is no http or https address';
  throw new ChannelError('telegram_api_root', problem, { remedy: NEVER });
}

type Exchange = {
  readonly method: string;
  readonly clock: Clock;
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
};

type RawAnswer = { readonly status: number; readonly text: string };

/** One request and its whole answer. A silent connection is left behind, never waited for. */
function exchange(call: ClientRequest, body: Buffer, options: Exchange): Promise<RawAnswer> {
  const { method, clock, signal } = options;
  return new Promise<RawAnswer>((resolve, reject) => {
    let isWritten = false;
    const fail = (reason: string) => {
      finish();
      call.destroy();
      reject(new BotCallError(method, { kind: isWritten ? 'unanswered' : 'not_reached', reason }));
    };
    const onAbort = () => fail('given up');
    const deadline = clock.timer(options.deadlineMs, () => fail('no answer in time'));
    const finish = () => {
      deadline[Symbol.dispose]();
      signal?.removeEventListener('abort', onAbort);
    };
    whenConnected(call, () => {
      isWritten = true;
    });
    call.on('error', (error) => {
      // Where the process may open no connection Node hands out a socket that never connects.
      if ('syscall' in error && error.syscall === 'connect') isWritten = false;
      fail(codeOf(error));
    });
    call.on('response', (response) => {
      readAll(response, fail, (text) => {
        finish();
        resolve({ status: response.statusCode ?? 0, text });
      });
    });
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) onAbort();
    else call.end(body);
  });
}

/** Before the connection stands, nothing of the request has left this machine. */
function whenConnected(call: ClientRequest, connected: () => void) {
  call.on('socket', (socket) => {
    if (!socket.connecting) connected();
    else socket.once('encrypted' in socket ? 'secureConnect' : 'connect', connected);
  });
}

function readAll(
  response: IncomingMessage,
  fail: (reason: string) => void,
  done: (text: string) => void,
) {
  const pieces: Buffer[] = [];
  let bytes = 0;
  response.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > MAX_ANSWER_BYTES) fail('answer too large');
    else pieces.push(piece);
  });
  response.on('error', (error) => fail(codeOf(error)));
  response.on('aborted', () => fail('connection lost'));
  response.on('end', () => done(Buffer.concat(pieces).toString('utf8')));
}

/** Only the code: messages of network errors may hold the address, and with it the token. */
function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : 'network error';
}

function parseAnswer(method: string, { status, text }: RawAnswer) {
  const answer = parseJson(text);
  if (typeof answer !== 'object' || answer === null || !('ok' in answer)) {
    throw new BotCallError(method, { kind: 'unanswered', reason: `HTTP ${status}` });
  }
  if (answer.ok === true && 'result' in answer) return answer as { ok: true; result: never };
  const code = 'error_code' in answer ? Number(answer.error_code) : status;
  const description = 'description' in answer ? String(answer.description) : 'no reason given';
  const retryAfterMs = retryAfterOf(answer);
  const migratedTo = integerOf(parameterOf(answer, 'migrate_to_chat_id'));
  throw new BotCallError(method, {
    kind: 'refused',
    code,
    description,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(migratedTo === undefined ? {} : { migratedTo }),
  });
}

function retryAfterOf(answer: object): number | undefined {
  const seconds = Number(parameterOf(answer, 'retry_after'));
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : undefined;
}

function parameterOf(answer: object, name: string): unknown {
  return fieldsOf(fieldsOf(answer)?.['parameters'])?.[name];
}
