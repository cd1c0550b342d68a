// OAuth2 for mailboxes: when it is used instead of the password, and where the large providers hand
// out access tokens. Asking for one is left to the channel.

import { isLoopbackHost } from '../../../lib/net/address-rules.ts';

export type OAuth2Settings = {
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly refreshToken: string;
  readonly scope: string;
};

export type TokenEndpoint = { readonly tokenUrl: string; readonly scope: string };

/**
 * By IMAP host, so that company domains at these providers are known too.
 * @see https://developers.google.com/workspace/gmail/imap/xoauth2-protocol
 * @see https://learn.microsoft.com/exchange/client-developer/legacy-protocols/how-to-authenticate-an-imap-pop-smtp-application-by-using-oauth
 */
const ENDPOINTS: readonly (TokenEndpoint & { readonly imapHosts: readonly string[] })[] = [
  {
    imapHosts: ['imap.gmail.com', 'imap.googlemail.com'],
    tokenUrl: 'https://oauth2.googleapis.com/token',
    scope: 'https://mail.google.com/',
  },
  {
    imapHosts: ['outlook.office365.com', 'imap-mail.outlook.com'],
    tokenUrl: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
    scope:
      'https://outlook.office.com/IMAP.AccessAsUser.All https://outlook.office.com/SMTP.Send offline_access',
  },
];

/** A refresh token is set: the log-in is by OAuth2 and the password is not used. */
export const usesOAuth2 = (settings: OAuth2Settings) => settings.refreshToken !== '';

export function knownTokenEndpoint(imapHost: string): TokenEndpoint | undefined {
  const host = imapHost.toLowerCase();
  return ENDPOINTS.find((endpoint) => endpoint.imapHosts.includes(host));
}

/** Where tokens of this mailbox come from: what is configured, else the provider's own. */
export function tokenEndpointOf(settings: OAuth2Settings, imapHost: string): TokenEndpoint {
  const known = settings.tokenUrl === '' ? knownTokenEndpoint(imapHost) : undefined;
  return {
    tokenUrl: settings.tokenUrl || (known?.tokenUrl ?? ''),
    scope: settings.scope || (known?.scope ?? ''),
  };
}

/** A refresh token may be sent there: encrypted, or on this machine. */
export function isSafeTokenUrl(tokenUrl: string): boolean {
  if (!URL.canParse(tokenUrl)) return false;
  const { protocol, hostname, username, password } = new URL(tokenUrl);
  if (username !== '' || password !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}
