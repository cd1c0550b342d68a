// Access tokens of a mailbox (RFC 6749 section 6): fetched with the refresh token, kept until shortly
// before they end, fetched anew once a server refuses one. No token stands in any error text.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { BACKOFF, ChannelError, NEVER } from '../../kernel/message/errors.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { OAuth2Settings, TokenEndpoint } from './rules/oauth.ts';

export const TOKEN_REFUSED = 'mail_token_refused';

const REQUEST_TIMEOUT_MS = 30_000;
const MAX_ANSWER_CHARS = 64 * 1024;
/** RFC 6749 section 5.1 leaves the lifetime out of some answers; an hour is what all of them give. */
const USUAL_LIFETIME_SECS = 3600;
const RENEW_BEFORE_END_MS = 5 * 60_000;

/** RFC 6749 section 5.2: nothing that another try would change. */
const FINAL_ERRORS = new Set([
  'invalid_grant',
  'invalid_client',
  'invalid_request',
  'invalid_scope',
  'unauthorized_client',
  'unsupported_grant_type',
]);

const grantSchema = z.object({
  access_token: z.string().min(1),
  expires_in: z.coerce.number().positive().optional().catch(undefined),
  refresh_token: z.string().min(1).optional().catch(undefined),
});
const refusalSchema = z.object({ error: z.string().regex(/^[a-z_]{1,60}$/) });

type Grant = z.infer<typeof grantSchema>;
type AccessToken = { readonly value: string; readonly renewAt: number };

export type AccessTokensDeps = {
  readonly settings: OAuth2Settings;
  readonly endpoint: TokenEndpoint;
  readonly clock: Clock;
  /** Keeps a refresh token that the provider put in place of the configured one. */
  readonly state?: KeyValueStore;
};

export class AccessTokens {
  readonly #deps: AccessTokensDeps;
  /** Names the configured refresh token, so that a new one in the configuration counts. */
  readonly #stateKey: string;
  #token: AccessToken | undefined;
  #underWay: Promise<AccessToken> | undefined;

  constructor(deps: AccessTokensDeps) {
    this.#deps = deps;
    const { clientId, refreshToken } = deps.settings;
    const name = createHash('sha256').update(`${clientId}\n${refreshToken}`).digest('hex');
    this.#stateKey = `oauth2/${name.slice(0, 32)}`;
  }

  /** @throws ChannelError `mail_token_refused` where asking again is useless, else `mail_server` */
  async current(): Promise<string> {
    const now = this.#deps.clock.now();
    if (this.#token !== undefined && now < this.#token.renewAt) return this.#token.value;
    this.#underWay ??= this.#refresh().finally(() => {
      this.#underWay = undefined;
    });
    this.#token = await this.#underWay;
    return this.#token.value;
  }

  /** A server refused this token, whatever its lifetime says. */
  discard(refused: string): void {
    if (this.#token?.value === refused) this.#token = undefined;
  }

  async #refresh(): Promise<AccessToken> {
    const { clock, state, settings } = this.#deps;
    const refreshToken = (await state?.get(this.#stateKey)) ?? settings.refreshToken;
    const grant = await this.#request(refreshToken);
    if (grant.refresh_token !== undefined && grant.refresh_token !== refreshToken) {
      await state?.set(this.#stateKey, grant.refresh_token);
    }
    const lifetimeMs = (grant.expires_in ?? USUAL_LIFETIME_SECS) * 1000;
    const margin = Math.min(RENEW_BEFORE_END_MS, lifetimeMs / 2);
    return { value: grant.access_token, renewAt: clock.now() + lifetimeMs - margin };
  }

  async #request(refreshToken: string): Promise<Grant> {
    const { settings, endpoint } = this.#deps;
    const form = new URLSearchParams({
      grant_type: 'refresh_token',
      client_id: settings.clientId,
      refresh_token: refreshToken,
    });
    if (settings.clientSecret !== '') form.set('client_secret', settings.clientSecret);
    if (endpoint.scope !== '') form.set('scope', endpoint.scope);
    const { status, body } = await post(endpoint.tokenUrl, form);
    const grant = status === 200 ? grantSchema.safeParse(body) : undefined;
    if (grant?.success) return grant.data;
    const error = refusalSchema.safeParse(body).data?.error;
    if (error !== undefined && status < 500 && FINAL_ERRORS.has(error)) throw refused(error);
    throw unreachable(`it answered with status ${status}`);
  }
}

/** A redirect would carry the refresh token somewhere else, so none is followed. */
async function post(
  url: string,
  form: URLSearchParams,
): Promise<{ readonly status: number; readonly body: unknown }> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { accept: 'application/json' },
      body: form,
      redirect: 'error',
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    const text = await response.text();
    return { status: response.status, body: text.length <= MAX_ANSWER_CHARS ? json(text) : {} };
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    throw unreachable(isLate ? 'it did not answer within 30 s' : 'it cannot be reached');
  }
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function refused(error: string): ChannelError {
  const meaning =
    error === 'invalid_grant'
      ? 'the refresh token is expired or withdrawn'
      : 'client or scope are not accepted';
  return new ChannelError(TOKEN_REFUSED, `the token server refused: ${meaning} (${error})`, {
    remedy: NEVER,
  });
}

const unreachable = (problem: string) =>
  new ChannelError('mail_server', `no access token from the token server: ${problem}`, {
    remedy: BACKOFF,
  });
