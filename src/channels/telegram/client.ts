// Calls to the Bot API: grammy's typed client over our own transport, which knows whether a failed
// request can have arrived, keeps connections, and holds every call to a deadline.

import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { ApiMethods, Opts } from 'grammy/types';
import { Api, type Transformer } from 'grammy/web';
import { ChannelError, NEVER } from '../../core/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { BotCallError } from './failures.ts';
import { fieldsOf, integerOf, parseJson } from './fields.ts';

type Method =
  | 'getUpdates'
  | 'deleteWebhook'
  | 'setMyCommands'
  | 'sendMessage'
  | 'editMessageText'
  | 'editMessageReplyMarkup'
  | 'deleteMessage'
  | 'answerCallbackQuery'
  | 'sendChatAction';

/** The methods we use, by grammy's types, with the platform's own AbortSignal. */
export type BotApi = {
  readonly [M in Method]: (
    payload: Opts<M>,
    signal: AbortSignal,
  ) => Promise<ReturnType<ApiMethods[M]>>;
} & { readonly getMe: (signal: AbortSignal) => Promise<ReturnType<ApiMethods['getMe']>> };

export type ClientOptions = {
  readonly token: string;
  readonly apiRoot: string;
  readonly clock: Clock;
};

/** Longest wait for any answer but that of a poll. */
const CALL_DEADLINE_MS = 30_000;
/** A poll is given this much beyond the time it asked Telegram to wait. */
const POLL_GRACE_MS = 15_000;
/** A connection idle for longer may be dead without anybody having said so. */
const IDLE_SOCKET_MS = 15_000;
/** Larger than any answer to a method we call (100 updates of at most some 10 kB). */
const MAX_ANSWER_BYTES = 20_000_000;

/** @throws ChannelError for an address that is none; every method throws BotCallError */
export function createBotApi({ token, apiRoot, clock }: ClientOptions): BotApi {
  // Taken apart before the token comes in: an error about an address quotes it.
  const root = parseRoot(apiRoot);
  const isTls = root.protocol === 'https:';
  const agentOptions = { keepAlive: true, timeout: IDLE_SOCKET_MS };
  const agent = isTls ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions);
  const request = isTls ? httpsRequest : httpRequest;
  const target = {
    hostname: root.hostname.replace(/^\[|\]$/g, ''),
    port: root.port,
    method: 'POST',
    agent,
  };
  const path = `${root.pathname.replace(/\/+$/, '')}/bot${encodeURI(token.trim())}/`;

  const transport: Transformer = async (_next, method, payload, signal) => {
    const body = Buffer.from(JSON.stringify(payload));
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    const call = request({ ...target, path: path + method, headers });
    const answer = await exchange(call, body, {
      method,
      clock,
      deadlineMs: deadlineOf(payload),
      signal: signal as AbortSignal | undefined,
    });
    return parseAnswer(method, answer);
  };

  const api = new Api(token, { apiRoot: root.origin });
  api.config.use(transport);
  // grammy's types name a polyfill's AbortSignal; ours goes straight to the transport.
  return api.raw as unknown as BotApi;
}

function parseRoot(apiRoot: string): URL {
  if (URL.canParse(apiRoot) && /^https?:/i.test(apiRoot)) return new URL(apiRoot);
  const problem = 'channels.telegram.apiRoot is no http or https address';
  throw new ChannelError('telegram_api_root', problem, { remedy: NEVER });
}

function deadlineOf(payload: object): number {
  const isPoll = 'timeout' in payload && typeof payload.timeout === 'number';
  return isPoll ? Number(payload.timeout) * 1000 + POLL_GRACE_MS : CALL_DEADLINE_MS;
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
    call.on('error', (error) => fail(codeOf(error)));
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
