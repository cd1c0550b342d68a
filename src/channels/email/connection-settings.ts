// What a connection to the mail servers needs: the account with its own addresses, OAuth2 access
// tokens, and errors that distinguish a refused account from an unreachable server. No secret is
// sent without TLS.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { BACKOFF, ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { parseJson } from '../../lib/json/json.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { headOf } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { normalizeAddress } from './rules/address.ts';
import {
  type EmailConfig,
  isSafeTokenUrl,
  type OAuth2Settings,
  type TokenEndpoint,
  tokenEndpointOf,
  usesOAuth2,
} from './settings.ts';

/** Lower TLS versions are refused (case E30). */
const MIN_TLS_VERSION = 'TLSv1.2';

export type MailServer = {
  readonly host: string;
  readonly port: number;
  readonly security: EmailConfig['imapSecurity'];
};

type MailCredential =
  /** An empty password means no login, for a server that wants none (SMTP on this machine). */
  | { readonly kind: 'password'; readonly password: string }
  | { readonly kind: 'oauth2'; readonly tokens: AccessTokens };

export type MailAccount = {
  readonly imap: MailServer;
  readonly smtp: MailServer;
  readonly username: string;
  readonly credential: MailCredential;
  /** The mailbox's own address. */
  readonly from: string;
  /** Its own address and its aliases. */
  readonly own: readonly string[];
  /** Certificate authorities to trust instead of the system's, PEM. */
  readonly certificateAuthority?: string | undefined;
};

type AccountDeps = {
  readonly clock: Clock;
  /** Where a renewed refresh token is kept. */
  readonly state?: KeyValueStore;
  readonly certificateAuthority?: string | undefined;
};

/** @throws ChannelError with remedy `never` that names the wrong setting. */
export function mailAccountOf(config: EmailConfig, deps: AccountDeps): MailAccount {
  const from = normalizeAddress(config.from === '' ? config.username : config.from);
  if (from === undefined) throw refused('`from` is not a plain email address');
  const imap = { host: config.imapHost, port: config.imapPort, security: config.imapSecurity };
  const smtp = { host: config.smtpHost, port: config.smtpPort, security: config.smtpSecurity };
  for (const server of [imap, smtp]) {
    if (server.host === '') throw refused('a mail server is missing');
    if (server.security === 'none' && !isLoopbackHost(server.host)) {
      throw refused('unencrypted mail is allowed only to loopback hosts');
    }
  }
  return {
    imap,
    smtp,
    username: config.username,
    credential: credentialOf(config, deps),
    from,
    own: [from, ...config.aliases.flatMap((alias) => normalizeAddress(alias) ?? [])],
    certificateAuthority: deps.certificateAuthority,
  };
}

function credentialOf(config: EmailConfig, { clock, state }: AccountDeps): MailCredential {
  const { oauth2: settings, password, imapHost } = config;
  if (!usesOAuth2(settings)) return { kind: 'password', password };
  const endpoint = tokenEndpointOf(settings, imapHost);
  if (!isSafeTokenUrl(endpoint.tokenUrl)) {
    throw refused('oauth2.tokenUrl is not an https address');
  }
  return { kind: 'oauth2', tokens: new AccessTokens({ settings, endpoint, clock, state }) };
}

export function tlsOptionsOf(account: MailAccount) {
  const { certificateAuthority } = account;
  return {
    minVersion: MIN_TLS_VERSION,
    rejectUnauthorized: true,
    ...(certificateAuthority === undefined ? {} : { ca: certificateAuthority }),
  } as const;
}

function refused(problem: string): ChannelError {
  return new ChannelError('mail_settings', problem, { remedy: NEVER });
}

/**
 * Logs in with the password or an access token; retries once with a new token if the server refused
 * the first.
 * @throws ChannelError if there is no token
 */
export async function withSecret<T>(
  credential: MailCredential,
  isRefusal: (error: unknown) => boolean,
  logIn: (secret: Secret) => Promise<T>,
): Promise<T> {
  if (credential.kind === 'password') return logIn({ pass: credential.password });
  const accessToken = await credential.tokens.current();
  try {
    return await logIn({ accessToken });
  } catch (error) {
    if (!isRefusal(error)) throw error;
    credential.tokens.discard(accessToken);
    return logIn({ accessToken: await credential.tokens.current() });
  }
}

export type Secret = { readonly pass: string } | { readonly accessToken: string };

// Access tokens of a mailbox (RFC 6749 section 6): fetched with the refresh token, cached until
// shortly before they expire, fetched again when a server refuses one. No error text contains a
// token.

export const TOKEN_REFUSED = 'mail_token_refused';

const REQUEST_TIMEOUT_MS = 30_000;
const MAX_ANSWER_CHARS = 64 * 1024;
/** RFC 6749 section 5.1 makes the lifetime optional; an hour is the usual value. */
const USUAL_LIFETIME_SECS = 3600;
const RENEW_BEFORE_END_MS = 5 * 60_000;

/** RFC 6749 section 5.2: errors that a retry cannot fix. */
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

type AccessTokensDeps = {
  readonly settings: OAuth2Settings;
  readonly endpoint: TokenEndpoint;
  readonly clock: Clock;
  /** Stores a refresh token that the provider issued in place of the configured one. */
  readonly state?: KeyValueStore | undefined;
};

export class AccessTokens {
  readonly #deps: AccessTokensDeps;
  /**
   * Derived from the configured refresh token, so that a new one in the configuration takes effect.
   */
  readonly #stateKey: string;
  #token: AccessToken | undefined;
  #underWay: Promise<AccessToken> | undefined;

  constructor(deps: AccessTokensDeps) {
    this.#deps = deps;
    const { clientId, refreshToken } = deps.settings;
    const name = createHash('sha256').update(`${clientId}\n${refreshToken}`).digest('hex');
    this.#stateKey = `oauth2/${name.slice(0, 32)}`;
  }

  /** @throws ChannelError `mail_token_refused` if asking again is useless, else `mail_server` */
  async current(): Promise<string> {
    const now = this.#deps.clock.now();
    if (this.#token !== undefined && now < this.#token.renewAt) return this.#token.value;
    this.#underWay ??= this.#refresh().finally(() => {
      this.#underWay = undefined;
    });
    this.#token = await this.#underWay;
    return this.#token.value;
  }

  /** Discards a token that a server refused, whatever its lifetime. */
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
    if (error !== undefined && status < 500 && FINAL_ERRORS.has(error)) throw tokenRefused(error);
    throw unreachable(`status ${status}`);
  }
}

/** Follows no redirect: it would carry the refresh token to another host. */
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
    const body = text.length <= MAX_ANSWER_CHARS ? parseJson(text) : undefined;
    return { status: response.status, body };
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    throw unreachable(isLate ? 'no answer within 30 s' : 'cannot reach it');
  }
}

function tokenRefused(error: string): ChannelError {
  const meaning =
    error === 'invalid_grant'
      ? 'the refresh token expired or was revoked'
      : 'the client or the scope was refused';
  return new ChannelError(TOKEN_REFUSED, `the token server refused: ${meaning} (${error})`, {
    remedy: NEVER,
  });
}

const unreachable = (problem: string) =>
  new ChannelError('mail_server', `no access token from the token server: ${problem}`, {
    remedy: BACKOFF,
  });

// Translates errors of the IMAP library: the account is refused permanently, or the server is
// unreachable or failing now.

export const AUTH_REFUSED = 'mail_auth_refused';

/** Response codes (RFC 5530) of a login that may succeed later. */
const MAX_DETAIL_CHARS = 200;
const TEMPORARY_LOGIN = new Set(['UNAVAILABLE', 'INUSE', 'LIMIT', 'SERVERBUG', 'CONTACTADMIN']);

export function imapFailure(doing: string, error: unknown): ChannelError {
  if (error instanceof ChannelError) return error;
  const isRefused =
    error instanceof Error &&
    'authenticationFailed' in error &&
    error.authenticationFailed === true &&
    !TEMPORARY_LOGIN.has(String('serverResponseCode' in error ? error.serverResponseCode : ''));
  const code = isRefused ? AUTH_REFUSED : 'mail_server';
  return new ChannelError(code, `${doing}: ${detailOf(error)}`, { remedy: BACKOFF, cause: error });
}

/** The server's own error text, if any. */
function detailOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const words = 'responseText' in error ? error.responseText : undefined;
  return typeof words === 'string' && words !== ''
    ? headOf(words, MAX_DETAIL_CHARS)
    : error.message;
}

/** The server was silent or answered wrongly: nothing is known about the mailbox. */
export function serverFault(problem: string): ChannelError {
  return new ChannelError('mail_server', problem, { remedy: BACKOFF });
}

/** The server offers no login mechanism for access tokens. */
export function tokenLoginMissing(): ChannelError {
  const problem = 'the IMAP server does not support login with OAuth2 (XOAUTH2 or OAUTHBEARER)';
  return new ChannelError(AUTH_REFUSED, problem, { remedy: BACKOFF });
}
