// How model servers are asked without a redirect followed: what they are asked holds private text and
// keys. Also short questions to a local model server beside the calls of its models: bounded in time and size,
// answered with undefined where the server does not answer as asked.

import { ProviderError } from '../kernel/message/errors.ts';
import { parseJson } from '../lib/json/json.ts';
import { boundedBody } from '../lib/net/bounded-body.ts';

export type LocalAddress = {
  /** As configured, with the path of the OpenAI dialect: `http://127.0.0.1:11434/v1`. */
  readonly apiBase: string;
  /** Empty where the server asks for none. */
  readonly apiKey: string;
  /** How it is reached; left out: as any address. */
  readonly fetch?: LocalFetch;
};

export type LocalFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** @throws ProviderError `redirected` */
export const refusingRedirects =
  (ask: LocalFetch, provider: string): LocalFetch =>
  async (url, init) => {
    const response = await ask(url, { ...init, redirect: 'manual' });
    if (response.status < 300 || response.status >= 400) return response;
    await response.body?.cancel();
    const to = targetOf(response.headers.get('location'), url);
    throw new ProviderError(`the server redirects to ${to}`, {
      failure: { kind: 'redirected', to },
      provider,
      model: '',
    });
  };

/** Its origin: the rest may hold anything. */
function targetOf(location: string | null, from: string | URL): string {
  const target = location === null ? undefined : URL.parse(location, from);
  return target?.origin ?? 'another address';
}

export type LocalQuestion = {
  /** Below the root of the server, or below `apiBase`. */
  readonly path: `/${string}`;
  readonly below: 'root' | 'apiBase';
  /** Sent as JSON; left out: GET. */
  readonly body?: Readonly<Record<string, unknown>>;
  readonly timeoutMs: number;
};

const MAX_BODY_BYTES = 4_000_000;

export type LocalAnswer = {
  readonly status: number;
  /** Undefined where it was no JSON, or too much of it. */
  readonly body: unknown;
};

/** Undefined where nothing answered in time. */
export async function askLocal(
  address: LocalAddress,
  { path, below, body: asked, timeoutMs }: LocalQuestion,
  signal: AbortSignal,
): Promise<LocalAnswer | undefined> {
  const base = below === 'root' ? rootOf(address.apiBase) : address.apiBase;
  const headers = {
    ...(address.apiKey === '' ? {} : { authorization: `Bearer ${address.apiKey}` }),
    ...(asked === undefined ? {} : { 'content-type': 'application/json' }),
  };
  try {
    const response = await (address.fetch ?? fetch)(`${base}${path}`, {
      headers,
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      ...(asked === undefined ? {} : { method: 'POST', body: JSON.stringify(asked) }),
    });
    const body = await boundedBody(response.body, MAX_BODY_BYTES);
    return { status: response.status, body: parseJson(body?.toString('utf8') ?? '') };
  } catch {
    return undefined;
  }
}

export const isOk = ({ status }: LocalAnswer) => status >= 200 && status < 300;

/** Where the server has its own dialect, beside OpenAI's. */
const rootOf = (apiBase: string) => apiBase.replace(/\/v1$/, '');
