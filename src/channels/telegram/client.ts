// Calls to the Bot API: grammy's typed client over our own connection, and uploads as forms. A failed
// request knows whether it can have arrived. The token is part of every URL, so no error contains a
// URL.

import { randomUUID } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { ApiMethods, Opts } from 'grammy/types';
import { Api, type Transformer } from 'grammy/web';
import {
  after,
  BACKOFF,
  ChannelError,
  DeliveryError,
  NanobotError,
  NEVER,
  type Remedy,
} from '../../kernel/message/errors.ts';
import { fieldsOf, integerOf, parseJson } from '../../lib/json/json.ts';
import { ProxyError } from '../../lib/net/address-rules.ts';
import { routed } from '../../lib/net/proxies.ts';
import { nodeHttp } from '../../lib/net/safe-fetch.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { CallFailure } from '../api-calls.ts';

type Method =
  | 'getUpdates'
  | 'deleteWebhook'
  | 'setMyCommands'
  | 'editMessageText'
  | 'editMessageReplyMarkup'
  | 'deleteMessage'
  | 'answerCallbackQuery'
  | 'setMessageReaction'
  | 'getFile'
  | 'sendChatAction';

/** The methods in use, by grammy's types, with the platform's own AbortSignal. */
export type BotApi = {
  readonly [M in Method]: (
    payload: Opts<M>,
    signal: AbortSignal,
  ) => Promise<ReturnType<ApiMethods[M]>>;
} & {
  readonly [M in 'getMe' | 'getWebhookInfo']: (
    signal: AbortSignal,
  ) => Promise<ReturnType<ApiMethods[M]>>;
};

/** A file in a form, under the name by which the fields refer to it. */
export type FormFile = {
  readonly field: string;
  readonly name: string;
  readonly mimeType: string;
  readonly content: Uint8Array;
};

/** `begins`: the request waits for it, with its connection. */
export type Sending = {
  readonly signal: AbortSignal;
  readonly begins?: Promise<void> | undefined;
};
type SentMessage = ReturnType<ApiMethods['sendMessage']>;

export type BotLink = ReturnType<typeof createBotLink>;

/** Deadline of every call except polls. */
export const CALL_DEADLINE_MS = 30_000;
/** 50 MB over a slow connection. */
const UPLOAD_DEADLINE_MS = 4 * 60_000;
/** Added to the time that a poll asked Telegram to wait. */
const POLL_GRACE_MS = 15_000;

/** @throws ChannelError for an invalid address; every method throws BotCallError */
export function createBotLink(options: LineOptions) {
  const line = openLine(options);
  const call = (method: string, payload: object, how: Pick<Posting, 'signal' | 'begins'>) =>
    line.post(method, {
      body: Buffer.from(JSON.stringify(payload)),
      contentType: 'application/json',
      deadlineMs: deadlineOf(payload),
      ...how,
    });
  const transport: Transformer = (_next, method, payload, signal) =>
    call(method, payload, { signal: signal as AbortSignal | undefined });
  const api = new Api(options.token, { apiRoot: line.origin });
  api.config.use(transport);
  return {
    // grammy's types name a polyfill's AbortSignal; ours goes directly to the transport.
    api: api.raw as unknown as BotApi,
    file: line.file,
    /** @throws BotCallError; what `begins` throws */
    async send(message: Opts<'sendMessage'>, how: Sending): Promise<SentMessage> {
      const { result } = await call('sendMessage', message, how);
      return result;
    },
    /** Calls a method with files. @throws BotCallError */
    async upload(
      method: string,
      fields: Readonly<Record<string, unknown>>,
      files: readonly FormFile[],
      signal: AbortSignal,
    ): Promise<unknown> {
      const boundary = randomUUID();
      const { result } = await line.post(method, {
        body: formBody(fields, files, boundary),
        contentType: `multipart/form-data; boundary=${boundary}`,
        deadlineMs: UPLOAD_DEADLINE_MS,
        signal,
      });
      return result;
    },
  };
}

function deadlineOf(payload: object): number {
  const isPoll = 'timeout' in payload && typeof payload.timeout === 'number';
  return isPoll ? Number(payload.timeout) * 1000 + POLL_GRACE_MS : CALL_DEADLINE_MS;
}

/**
 * RFC 7578; a value that is not a text is JSON, as the Bot API requires. FormData would change the
 * line breaks of captions.
 */
function formBody(
  fields: Readonly<Record<string, unknown>>,
  files: readonly FormFile[],
  boundary: string,
): Buffer {
  const pieces: Uint8Array[] = [];
  const add = (disposition: string, type: string, content: Uint8Array) => {
    const head = `--${boundary}\r\ncontent-disposition: form-data; ${disposition}\r\n${type}\r\n`;
    pieces.push(Buffer.from(head), content, Buffer.from('\r\n'));
  };
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    add(`name="${name}"`, '', Buffer.from(text));
  }
  for (const { field, name, mimeType, content } of files) {
    const fileName = name.replace(/[\p{C}"\\/]/gu, '_');
    add(t`name="${field}"; filename="${fileName}"`, `content-type: ${mimeType}\r\n`, content);
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`));
  return Buffer.concat(pieces);
}

// The connection to a Bot API server, kept alive; each request has a deadline.

export type LineOptions = {
  readonly token: string;
  readonly apiRoot: string;
  /** The setting; default: none. */
  readonly proxy?: string;
  readonly clock: Clock;
  /** Gets the time of the server with each of its answers, epoch milliseconds. */
  onDate?(date: number): void;
};

type Posting = {
  readonly body: Buffer;
  readonly contentType: string;
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
  /** Nothing is sent before. */
  readonly begins?: Promise<void> | undefined;
};

/** A connection that is idle for longer may be dead unnoticed. */
const IDLE_SOCKET_MS = 15_000;
/** A limit, so that other parts of the program keep enough open files. */
const MAX_IDLE_SOCKETS = 16;
/** Larger than any response to a method in use (100 updates of at most some 10 kB). */
const MAX_ANSWER_BYTES = 20_000_000;

/** @throws ChannelError for an invalid address */
function openLine({ token, apiRoot, proxy = '', clock, onDate }: LineOptions) {
  // Parsed before the token is inserted: an error about a URL quotes it.
  const root = parseRoot(apiRoot);
  const isTls = root.protocol === 'https:';
  const agentOptions = {
    keepAlive: true,
    timeout: IDLE_SOCKET_MS,
    maxFreeSockets: MAX_IDLE_SOCKETS,
  };
  const own = isTls ? new HttpsAgent(agentOptions) : new nodeHttp.Agent(agentOptions);
  const agent = routed(own, proxy);
  const request = isTls ? httpsRequest : nodeHttp.request;
  const hostname = root.hostname.replace(/^\[|\]$/g, '');
  const target = { hostname, port: root.port, agent };
  const base = root.pathname.replace(/\/+$/, '');
  const bot = `bot${encodeURI(token.trim())}`;
  return {
    /** `https://host:port`, without the token. */
    origin: root.origin,
    /** @throws BotCallError */
    async post(method: string, { body, contentType, ...how }: Posting) {
      const headers = { 'content-type': contentType, 'content-length': body.length };
      const path = `${base}/${bot}/${method}`;
      const call = request({ ...target, method: 'POST', path, headers });
      const answer = await exchange(call, body, { method, clock, ...how });
      const date = Date.parse(answer.date);
      if (Number.isFinite(date)) onDate?.(date);
      return parseAnswer(method, answer);
    },
    /** The file at a path of getFile; its body is still to be read. @throws BotCallError */
    file(path: string, signal: AbortSignal): Promise<IncomingMessage> {
      const call = request({ ...target, method: 'GET', path: `${base}/file/${bot}/${path}` });
      return opened(call, signal);
    },
  };
}

/** The head of the response; a missing file is refused with its status. */
function opened(call: ClientRequest, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => {
      call.destroy();
      reject(new BotCallError('file', { kind: 'unanswered', reason }));
    };
    const onAbort = () => fail(t`given up`);
    call.on('error', (error) => fail(codeOf(error)));
    call.on('close', () => signal.removeEventListener('abort', onAbort));
    call.on('response', (response) => {
      const code = response.statusCode ?? 0;
      if (code === 200) return resolve(response);
      call.destroy();
      reject(new BotCallError('file', { kind: 'refused', code, description: t`no such file` }));
    });
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    else call.end();
  });
}

function parseRoot(apiRoot: string): URL {
  if (URL.canParse(apiRoot) && /^https?:/i.test(apiRoot)) return new URL(apiRoot);
  const problem = t`channels.telegram.apiRoot is not an http or https address`;
  throw new ChannelError('telegram_api_root', problem, { remedy: NEVER });
}

type Exchange = Omit<Posting, 'body' | 'contentType'> & {
  readonly method: string;
  readonly clock: Clock;
};

type RawAnswer = { readonly status: number; readonly text: string; readonly date: string };

/** One request and its whole response. A silent connection is abandoned, never waited for. */
function exchange(call: ClientRequest, body: Buffer, options: Exchange): Promise<RawAnswer> {
  const { method, clock, signal, begins } = options;
  return new Promise<RawAnswer>((resolve, reject) => {
    let hasBegun = begins === undefined;
    let isConnected = false;
    const fail = (reason: string) => {
      finish();
      call.destroy();
      const kind = hasBegun && isConnected ? 'unanswered' : 'not_reached';
      reject(new BotCallError(method, { kind, reason }));
    };
    const onAbort = () => fail(t`given up`);
    const deadline = clock.timer(options.deadlineMs, () => fail(t`no answer in time`));
    const finish = () => {
      deadline[Symbol.dispose]();
      signal?.removeEventListener('abort', onAbort);
    };
    whenConnected(call, () => {
      isConnected = true;
    });
    call.on('error', (error) => {
      // If the process may not open connections, Node returns a socket that never connects.
      if ('syscall' in error && error.syscall === 'connect') isConnected = false;
      fail(codeOf(error));
    });
    call.on('response', (response) => {
      readAll(response, fail, (text) => {
        finish();
        const { date = '' } = response.headers;
        resolve({ status: response.statusCode ?? 0, text, date });
      });
    });
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) return onAbort();
    if (begins === undefined) return void call.end(body);
    begins.then(
      () => {
        hasBegun = true;
        // It may have failed meanwhile.
        if (!call.destroyed) call.end(body);
      },
      (error) => {
        finish();
        call.destroy();
        reject(error);
      },
    );
  });
}

/** Until the connection is established, nothing of the request has left this machine. */
function whenConnected(call: ClientRequest, connected: () => void) {
  call.on('socket', (socket) => {
    // Over the tunnel of a proxy it is connected before it is encrypted.
    const isSecuring = 'secureConnecting' in socket && socket.secureConnecting === true;
    if (!socket.connecting && !isSecuring) connected();
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
    if (bytes > MAX_ANSWER_BYTES) fail(t`answer too large`);
    else pieces.push(piece);
  });
  response.on('error', (error) => fail(codeOf(error)));
  response.on('aborted', () => fail(t`connection lost`));
  response.on('end', () => done(Buffer.concat(pieces).toString('utf8')));
}

/** Only the code: messages of network errors may contain the URL, and with it the token. */
function codeOf(error: Error): string {
  if (error instanceof ProxyError) return error.message;
  return 'code' in error && typeof error.code === 'string' ? error.code : t`network error`;
}

function parseAnswer(method: string, { status, text }: RawAnswer) {
  const answer = parseJson(text);
  if (typeof answer !== 'object' || answer === null || !('ok' in answer)) {
    throw new BotCallError(method, { kind: 'unanswered', reason: `HTTP ${status}` });
  }
  if (answer.ok === true && 'result' in answer) return answer as { ok: true; result: never };
  const code = 'error_code' in answer ? Number(answer.error_code) : status;
  const description = 'description' in answer ? String(answer.description) : t`no reason given`;
  const parameters = fieldsOf(fieldsOf(answer)?.['parameters']);
  const seconds = Number(parameters?.['retry_after']);
  const retryAfterMs = Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : undefined;
  const migratedTo = integerOf(parameters?.['migrate_to_chat_id']);
  throw new BotCallError(method, { kind: 'refused', code, description, retryAfterMs, migratedTo });
}

// Failures of a Bot API call, distinguished by what they mean for a message.

/** `migratedTo`: the group's current id. */
export type BotCallFailure = CallFailure<{ readonly migratedTo?: number | undefined }>;

export class BotCallError extends NanobotError {
  override readonly name = 'BotCallError';
  readonly failure: BotCallFailure;
  constructor(method: string, failure: BotCallFailure) {
    super(`telegram_${failure.kind}`, t`Telegram ${method}: ${describeFailure(failure)}`);
    this.failure = failure;
  }
}

export function describeFailure(failure: BotCallFailure): string {
  if (failure.kind === 'refused') return `${failure.code} ${failure.description}`;
  return failure.kind === 'not_reached'
    ? t`Telegram is not reachable (${failure.reason})`
    : t`no usable answer from Telegram (${failure.reason})`;
}

const SERVER_ERROR = 500;

/** What a failed call means for the message it carried. `repeatable`: a second call is harmless. */
export function toDeliveryError(error: unknown, repeatable: boolean): unknown {
  if (!(error instanceof BotCallError)) return error;
  const { failure } = error;
  const isKnown =
    failure.kind === 'not_reached' || (failure.kind === 'refused' && failure.code < SERVER_ERROR);
  return new DeliveryError(error.message, {
    certainty: isKnown || repeatable ? 'not_sent' : 'unknown',
    remedy: remedyFor(failure),
    code: error.code,
  });
}

function remedyFor(failure: BotCallFailure): Remedy {
  if (failure.kind !== 'refused') return BACKOFF;
  if (failure.retryAfterMs !== undefined) return after(failure.retryAfterMs);
  // A refused token and a conflict with another program concern the channel: its messages wait.
  if (failure.code === 401 || failure.code === 409 || failure.code === 429) return BACKOFF;
  return failure.code < SERVER_ERROR ? NEVER : BACKOFF;
}

const isRefusal = (error: unknown, pattern: RegExp) =>
  error instanceof BotCallError &&
  error.failure.kind === 'refused' &&
  error.failure.code === 400 &&
  pattern.test(error.failure.description);

export const isFormattingRefused = (error: unknown) => isRefusal(error, /can't parse entities/i);
export const isUnchanged = (error: unknown) => isRefusal(error, /message is not modified/i);
export const isGone = (error: unknown) =>
  isRefusal(error, /message to (?:edit|delete) not found|message can't be|MESSAGE_ID_INVALID/i) ||
  migratedTo(error) !== undefined;
/** It was deleted before. */
export const isNotThere = (error: unknown) =>
  isRefusal(error, /message to delete not found|MESSAGE_ID_INVALID/i) ||
  migratedTo(error) !== undefined;
/** The topic was deleted, or the group no longer has topics. */
export const isTopicGone = (error: unknown) => isRefusal(error, /message thread not found/i);

/** The new id of a group that became a supergroup; its messages have other ids there. */
export function migratedTo(error: unknown): number | undefined {
  const failure = error instanceof BotCallError ? error.failure : undefined;
  return failure?.kind === 'refused' ? failure.migratedTo : undefined;
}
