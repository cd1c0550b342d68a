// Calls of Lark's REST API: the SDK's client over our own HTTP. It keeps the tenant token and
// requests a new one once when it is refused. Setup tests an app's id and secret here.

import { type Agent, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Readable } from 'node:stream';
import { Client, defaultHttpInstance, type HttpInstance } from '@larksuiteoapi/node-sdk';
import { BACKOFF, ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { fieldsOf, parseJson } from '../../lib/json/json.ts';
import { routed } from '../../lib/net/proxies.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, systemClock } from '../../lib/time/clock.ts';
import {
  areCredentialsRefused,
  callErrorOf,
  isTokenRefused,
  LarkCallError,
  refusalOf,
} from './failures.ts';
import { at } from './rules/content.ts';
import { larkRoot } from './settings.ts';

export type LarkApp = {
  readonly appId: string;
  readonly appSecret: string;
  /** `https://open.feishu.cn`, without a path. */
  readonly root: string;
  /** The setting; default: none. */
  readonly proxy?: string;
};

export type Call = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Path after `/open-apis/`. */
  readonly path: string;
  readonly params?: Readonly<Record<string, string | boolean>>;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly isForm?: boolean;
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
};

export type LarkApi = ReturnType<typeof createLarkApi>;

/** The connection carries the app secret: plain HTTP only within this machine. */
export function agentFor({ root, proxy = '' }: LarkApp, keepAlive: boolean): HttpAgent {
  const options = { keepAlive, timeout: 60_000 };
  return routed(isTls(root) ? new HttpsAgent(options) : new HttpAgent(options), proxy);
}

const isTls = (root: string) => new URL(root).protocol === 'https:';

export function createLarkApi(app: LarkApp, clock: Clock) {
  const agent = agentFor(app, true);
  const tokens = new Map<unknown, { readonly value: unknown; readonly expiresAt: number }>();
  const client = new Client({
    appId: app.appId,
    appSecret: app.appSecret,
    domain: app.root,
    httpInstance: createHttp(agent, assertToken),
    // Every failure is thrown; the SDK's log text would contain the request.
    logger: SILENT_SDK,
    cache: {
      get: async (key) => {
        const token = tokens.get(key);
        return token !== undefined && token.expiresAt > clock.now() ? token.value : undefined;
      },
      set: async (key, value, expiresAt = Number.POSITIVE_INFINITY) => {
        tokens.set(key, { value, expiresAt });
        return true;
      },
    },
  });

  async function once(call: Call, responseType: 'json' | 'stream'): Promise<unknown> {
    const { method, path, params, data, signal, timeoutMs, isForm } = call;
    return client.request({
      method,
      url: `/open-apis/${path}`,
      responseType,
      signal,
      ...(params === undefined ? {} : { params }),
      ...(data === undefined ? {} : { data }),
      ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
      ...(isForm === true ? { headers: { 'Content-Type': 'multipart/form-data' } } : {}),
    });
  }

  async function withToken<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      if (!isTokenRefused(error)) throw error;
      tokens.clear();
      return run();
    }
  }

  return {
    /** The whole response, whose `code` is 0. @throws LarkCallError */
    call: (call: Call): Promise<unknown> =>
      withToken(async () => {
        const body = await once(call, 'json');
        const refusal = refusalOf(body);
        if (refusal !== undefined) throw refusal;
        return body;
      }),
    /** @throws LarkCallError */
    download: (call: Call) => withToken(async () => (await once(call, 'stream')) as Readable),
    close: () => agent.destroy(),
  };
}

/** The SDK reports a refused secret as text only: its code is read here. */
function assertToken(url: string, body: unknown) {
  if (!url.endsWith('/tenant_access_token/internal')) return;
  const refusal = refusalOf(body);
  if (refusal !== undefined) throw refusal;
}

export type BotInfo = { readonly openId: string; readonly name: string };

/** The app's bot; also tests id and secret. @throws LarkCallError */
export async function botInfo(api: LarkApi, signal: AbortSignal): Promise<BotInfo> {
  const bot = fieldsOf(at(await api.call({ method: 'GET', path: 'bot/v3/info', signal }), 'bot'));
  const openId = bot?.['open_id'];
  if (typeof openId !== 'string' || openId === '') {
    throw new LarkCallError({ kind: 'unanswered', reason: t`the answer names no bot` });
  }
  return { openId, name: String(bot?.['app_name'] ?? t`the bot`) };
}

/** A text for the person who set it up; undefined if waiting may help. */
export function lastingTrouble(error: unknown): ChannelError | undefined {
  if (areCredentialsRefused(error)) {
    const problem = t`Lark refused this app id and secret`;
    return new ChannelError('lark_credentials_refused', problem, { remedy: NEVER });
  }
  const code = error instanceof LarkCallError && 'code' in error.failure ? error.failure.code : 0;
  if (!BOT_OFF.includes(code)) return undefined;
  const problem = t`the app has no bot or no published version`;
  return new ChannelError('lark_no_bot', problem, { remedy: NEVER });
}

/**
 * No bot, app not usable in this tenant (bot-v3/obtain-bot-info), bot not activated
 * (im-v1/message/create).
 */
const BOT_OFF: readonly number[] = [11205, 11207, 230006];

// The HTTP that the SDK uses: its own client, without redirects and proxies, with a deadline for
// each call. An error of that client contains the request with its secrets: it stops here and is
// replaced by a named error.

/** Deadline of a call that sets no other. */
const CALL_DEADLINE_MS = 30_000;
/** Larger than any response except files, which are streamed. */
const MAX_ANSWER_BYTES = 20_000_000;
/** Larger than any refusal that comes in place of a file. */
const MAX_REFUSAL_BYTES = 64_000;

/** @throws LarkCallError from every call */
export function createHttp(agent: Agent, onAnswer: (url: string, body: unknown) => void) {
  const request = async (options: { readonly url?: string; readonly responseType?: string }) => {
    const isStream = options.responseType === 'stream';
    try {
      const answer: unknown = await defaultHttpInstance.request({
        timeout: CALL_DEADLINE_MS,
        ...(isStream ? { $return_headers: true } : { maxContentLength: MAX_ANSWER_BYTES }),
        ...options,
        maxRedirects: 0,
        proxy: false,
        httpAgent: agent,
        httpsAgent: agent,
      } as Parameters<typeof defaultHttpInstance.request>[0]);
      const body = isStream ? await fileOf(answer) : answer;
      onAnswer(options.url ?? '', body);
      return body;
    } catch (error) {
      throw callErrorOf(isStream ? await withBodyRead(error) : error);
    }
  };
  const post = (url: string, data: unknown, options: object = {}) =>
    request({ ...options, ...{ method: 'post', url, data } });
  // The SDK calls only these two.
  return { request, post } as unknown as HttpInstance;
}

/**
 * The file of a response with its headers. Lark may refuse with HTTP 200 as well: JSON instead of a
 * file.
 * @throws LarkCallError
 */
async function fileOf(answer: unknown): Promise<unknown> {
  const [stream, headers] = [at(answer, 'data'), at(answer, 'headers')];
  const isJson = String(at(headers, 'content-type') ?? '').startsWith('application/json');
  const isFile = at(headers, 'content-disposition') !== undefined;
  if (!(stream instanceof Readable) || !isJson || isFile) return stream;
  const { head, rest } = await headOf(stream);
  const body = rest === undefined ? fieldsOf(parseJson(head.toString())) : undefined;
  const isAnswer = Number.isInteger(body?.['code']) && typeof body?.['msg'] === 'string';
  const refusal = isAnswer ? refusalOf(body) : undefined;
  if (refusal !== undefined) throw refusal;
  return Readable.from(rest === undefined ? [head] : joined(head, rest), { objectMode: false });
}

/** The error of a stream with the body that Lark sent, like the errors of other calls. */
async function withBodyRead(error: unknown): Promise<unknown> {
  const response = fieldsOf(at(error, 'response'));
  const stream = response?.['data'];
  if (!(stream instanceof Readable)) return error;
  const { head, rest } = await headOf(stream).catch(() => ({
    head: Buffer.alloc(0),
    rest: stream,
  }));
  stream.destroy();
  const data = rest === undefined ? parseJson(head.toString()) : undefined;
  return { response: { ...response, data } };
}

/** As much as a refusal can hold; `rest` if there is more. */
async function headOf(stream: Readable) {
  const pieces: Buffer[] = [];
  let size = 0;
  const rest: AsyncIterator<Uint8Array> = stream[Symbol.asyncIterator]();
  while (size <= MAX_REFUSAL_BYTES) {
    const { done, value } = await rest.next();
    if (done === true) return { head: Buffer.concat(pieces), rest: undefined };
    pieces.push(Buffer.from(value));
    size += value.length;
  }
  return { head: Buffer.concat(pieces), rest };
}

async function* joined(head: Uint8Array, rest: AsyncIterator<Uint8Array>) {
  yield head;
  yield* { [Symbol.asyncIterator]: () => rest };
}

const nothing = () => undefined;
/** For those parts of the SDK that throw what they would log. */
export const SILENT_SDK = {
  ...{ error: nothing, warn: nothing, info: nothing, debug: nothing, trace: nothing },
};

// For setup: tests an app id and secret and reads the bot's name.

export type LarkCredentials = {
  readonly appId: string;
  readonly appSecret: string;
  /** `feishu`, `lark` or an address. */
  readonly domain: string;
  readonly proxy: string;
};

/** @throws ChannelError as a text for the person; never contains the secret */
export async function proveLark(
  { appId, appSecret, domain, proxy }: LarkCredentials,
  signal: AbortSignal,
): Promise<BotInfo> {
  const api = createLarkApi({ appId, appSecret, root: larkRoot(domain), proxy }, systemClock);
  try {
    return await botInfo(api, signal);
  } catch (error) {
    if (!(error instanceof LarkCallError)) throw error;
    throw (
      lastingTrouble(error) ??
      new ChannelError('lark_unreachable', `${error.message}.`, { remedy: BACKOFF })
    );
  } finally {
    api.close();
  }
}
