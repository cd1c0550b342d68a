// What a connection to the mail servers needs: the account with its own addresses, OAuth2 access
// tokens, and errors that distinguish a refused account from an unreachable server. No secret is
// sent without TLS.

import { BACKOFF, ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import type { Reach } from '../../lib/net/proxies.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { AccessTokens, type GrantRows } from './access-tokens.ts';
import { normalizeAddress } from './rules/address.ts';
import { type EmailConfig, isSafeTokenUrl, providerOf, usesOAuth2 } from './settings.ts';

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
  /** The setting of its proxy; default: none. */
  readonly proxy?: string;
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
  /** Where tokens are kept; without it, only until the end of the process. */
  readonly state?: GrantRows | undefined;
  readonly certificateAuthority?: string | undefined;
};

/** @throws ChannelError with remedy `never` that names the wrong setting. */
export function mailAccountOf(config: EmailConfig, deps: AccountDeps): MailAccount {
  const from = normalizeAddress(config.from === '' ? config.username : config.from);
  if (from === undefined) throw refused(t`\`from\` is not a plain email address`);
  const imap = { host: config.imapHost, port: config.imapPort, security: config.imapSecurity };
  const smtp = { host: config.smtpHost, port: config.smtpPort, security: config.smtpSecurity };
  for (const server of [imap, smtp]) {
    if (server.host === '') throw refused(t`a mail server is missing`);
    if (server.security === 'none' && !isLoopbackHost(server.host)) {
      throw refused(t`unencrypted mail is allowed only to loopback hosts`);
    }
  }
  return {
    proxy: config.proxy,
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
  const { oauth2: settings, username, password, imapHost } = config;
  if (!usesOAuth2(config)) return { kind: 'password', password };
  const endpoint = providerOf(settings, imapHost);
  if (!isSafeTokenUrl(endpoint.tokenUrl)) {
    throw refused(t`oauth2.tokenUrl is not an https address`);
  }
  const { proxy } = config;
  const deps = { settings, username, endpoint, proxy, clock, state };
  return { kind: 'oauth2', tokens: new AccessTokens(deps) };
}

export function tlsOptionsOf({ certificateAuthority }: MailAccount, { servername }: Reach) {
  return {
    minVersion: MIN_TLS_VERSION,
    rejectUnauthorized: true,
    ...(certificateAuthority === undefined ? {} : { ca: certificateAuthority }),
    ...(servername === undefined ? {} : { servername }),
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
  const problem = t`the IMAP server does not support login with OAuth2 (XOAUTH2 or OAUTHBEARER)`;
  return new ChannelError(AUTH_REFUSED, problem, { remedy: BACKOFF });
}
