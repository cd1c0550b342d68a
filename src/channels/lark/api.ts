// Calls of Lark's REST API: the SDK's client over our own HTTP. It keeps the tenant token; one that is
// refused is asked for anew, once.

import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Readable } from 'node:stream';
import { Client } from '@larksuiteoapi/node-sdk';
import { ChannelError, NEVER } from '../../core/errors.ts';
import { fieldsOf } from '../../core/fields.ts';
import type { Clock } from '../../lib/clock.ts';
import { areCredentialsRefused, isTokenRefused, LarkCallError, refusalOf } from './failures.ts';
import { at } from './fields.ts';
import { createHttp, SILENT_SDK } from './http.ts';

export type LarkApp = {
  readonly appId: string;
  readonly appSecret: string;
  /** `https://open.feishu.cn`, without a path. */
  readonly root: string;
};

export type Call = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Behind `/open-apis/`. */
  readonly path: string;
  readonly params?: Readonly<Record<string, string | boolean>>;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly isForm?: boolean;
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
};

export type LarkApi = {
  /** The whole answer, whose `code` is 0. @throws LarkCallError */
  call(call: Call): Promise<unknown>;
  /** @throws LarkCallError */
  download(call: Call): Promise<Readable>;
  close(): void;
};

/** Whose secret this is, could be heard on the way: plain HTTP only within this machine. */
export function agentFor(root: string, keepAlive: boolean): HttpAgent {
  const options = { keepAlive, timeout: 60_000 };
  return isTls(root) ? new HttpsAgent(options) : new HttpAgent(options);
}

const isTls = (root: string) => new URL(root).protocol === 'https:';

export function createLarkApi(app: LarkApp, clock: Clock): LarkApi {
  const agent = agentFor(app.root, true);
  const tokens = new Map<unknown, { readonly value: unknown; readonly expiresAt: number }>();
  const client = new Client({
    appId: app.appId,
    appSecret: app.appSecret,
    domain: app.root,
    httpInstance: createHttp(agent, assertToken),
    // Every failure is thrown; what the SDK would log of it holds the request.
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
    call: (call) =>
      withToken(async () => {
        const body = await once(call, 'json');
        const refusal = refusalOf(body, 200);
        if (refusal !== undefined) throw refusal;
        return body;
      }),
    download: (call) => withToken(async () => (await once(call, 'stream')) as Readable),
    close: () => agent.destroy(),
  };
}

/** The SDK tells of a refused secret in words alone: its code is taken here. */
function assertToken(url: string, body: unknown) {
  if (!url.endsWith('/tenant_access_token/internal')) return;
  const refusal = refusalOf(body, 200);
  if (refusal !== undefined) throw refusal;
}

export type BotInfo = { readonly openId: string; readonly name: string };

/** Who the app's bot is; proves id and secret on the way. @throws LarkCallError */
export async function botInfo(api: LarkApi, signal: AbortSignal): Promise<BotInfo> {
  const bot = fieldsOf(at(await api.call({ method: 'GET', path: 'bot/v3/info', signal }), 'bot'));
  const openId = bot?.['open_id'];
  if (typeof openId !== 'string' || openId === '') {
    throw new LarkCallError({ kind: 'unanswered', reason: 'it names no bot' });
  }
  return { openId, name: String(bot?.['app_name'] ?? 'the bot') };
}

/** In words for the person who set it up; undefined where waiting may help. */
export function lastingTrouble(error: unknown): ChannelError | undefined {
  if (areCredentialsRefused(error)) {
    return new ChannelError(
      'lark_credentials_refused',
      'Lark does not take this app id and secret',
      {
        remedy: NEVER,
      },
    );
  }
  const code = error instanceof LarkCallError && 'code' in error.failure ? error.failure.code : 0;
  if (code !== BOT_OFF) return undefined;
  return new ChannelError('lark_no_bot', 'the app has no bot, or no version of it is published', {
    remedy: NEVER,
  });
}

/** open.feishu.cn/document/server-docs/im-v1/message/create, error codes */
const BOT_OFF = 230006;
