// The mail configuration as the channel uses it: own addresses in one spelling, and what must hold
// before a password or token is sent anywhere.

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { EmailConfig } from '../../kernel/config/config.ts';
import { ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { AccessTokens } from './access-tokens.ts';
import { normalizeAddress } from './rules/address.ts';
import { isSafeTokenUrl, tokenEndpointOf, usesOAuth2 } from './rules/oauth.ts';

/** TLS below this version is refused (case E30). */
const MIN_TLS_VERSION = 'TLSv1.2';

export type MailServer = {
  readonly host: string;
  readonly port: number;
  readonly security: EmailConfig['imapSecurity'];
};

export type MailCredential =
  /** An empty password: no log-in, where the server wants none (SMTP on this machine). */
  | { readonly kind: 'password'; readonly password: string }
  | { readonly kind: 'oauth2'; readonly tokens: AccessTokens };

export type MailAccount = {
  readonly imap: MailServer;
  readonly smtp: MailServer;
  readonly username: string;
  readonly credential: MailCredential;
  /** Our address. */
  readonly from: string;
  /** Our address and its aliases. */
  readonly own: readonly string[];
  /** Certificate authorities to trust instead of the system's, PEM. */
  readonly certificateAuthority?: string;
};

export type AccountDeps = {
  readonly clock: Clock;
  /** Where a renewed refresh token is kept. */
  readonly state?: KeyValueStore;
  readonly certificateAuthority?: string;
};

/** @throws ChannelError with remedy `never`, saying which setting is wrong. */
export function mailAccountOf(config: EmailConfig, deps: AccountDeps): MailAccount {
  const from = normalizeAddress(config.from === '' ? config.username : config.from);
  if (from === undefined) throw refused('its `from` is not a plain mail address');
  const imap = { host: config.imapHost, port: config.imapPort, security: config.imapSecurity };
  const smtp = { host: config.smtpHost, port: config.smtpPort, security: config.smtpSecurity };
  for (const server of [imap, smtp]) {
    if (server.host === '') throw refused('a mail host is missing');
    if (server.security === 'none' && !isLoopbackHost(server.host)) {
      throw refused('unencrypted mail is allowed to loopback hosts only');
    }
  }
  const { certificateAuthority } = deps;
  return {
    imap,
    smtp,
    username: config.username,
    credential: credentialOf(config, deps),
    from,
    own: [from, ...config.aliases.flatMap((alias) => normalizeAddress(alias) ?? [])],
    ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
  };
}

function credentialOf(config: EmailConfig, { clock, state }: AccountDeps): MailCredential {
  const { oauth2: settings, password, imapHost } = config;
  if (!usesOAuth2(settings)) return { kind: 'password', password };
  const endpoint = tokenEndpointOf(settings, imapHost);
  if (!isSafeTokenUrl(endpoint.tokenUrl)) {
    throw refused('its oauth2.tokenUrl is no https address');
  }
  const stored = state === undefined ? {} : { state };
  return { kind: 'oauth2', tokens: new AccessTokens({ settings, endpoint, clock, ...stored }) };
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
