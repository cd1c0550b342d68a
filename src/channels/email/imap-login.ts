// The IMAP library set up for one account, and what a log-in needs: the password, or an access token
// that is fetched anew once when the server refuses it.

import { ImapFlow } from 'imapflow';
import { ChannelError } from '../../core/errors.ts';
import { AUTH_REFUSED } from './imap-failure.ts';
import { type MailAccount, type MailCredential, tlsOptionsOf } from './settings.ts';

export const COMMAND_DEADLINE_MS = 30_000;
/** RFC 2177 allows 29 minutes; routers forget much sooner. */
export const MAX_IDLE_MS = 5 * 60_000;
/** Must outlast one IDLE, or the library takes silence for death. */
const SOCKET_SILENCE_MS = 7 * 60_000;
const MAX_LITERAL_BYTES = 32 * 1024 * 1024;
const MAX_RESPONSE_BYTES = 40 * 1024 * 1024;
const MAX_LINE_BYTES = 4 * 1024 * 1024;

export type Secret = { readonly pass: string } | { readonly accessToken: string };

export function newImapClient(account: MailAccount, secret: Secret): ImapFlow {
  return new ImapFlow({
    host: account.imap.host,
    port: account.imap.port,
    secure: account.imap.security === 'tls',
    doSTARTTLS: account.imap.security === 'starttls',
    auth: { user: account.username, ...secret },
    tls: tlsOptionsOf(account),
    disableAutoIdle: true,
    disableCompression: true,
    logger: false,
    maxIdleTime: MAX_IDLE_MS,
    connectionTimeout: COMMAND_DEADLINE_MS,
    socketTimeout: SOCKET_SILENCE_MS,
    maxLiteralSize: MAX_LITERAL_BYTES,
    maxResponseSize: MAX_RESPONSE_BYTES,
    maxLineLength: MAX_LINE_BYTES,
  });
}

/** Opens with the credential; with OAuth2 once more, by a new token. @throws ChannelError */
export async function withImapSecret<T>(
  credential: MailCredential,
  open: (secret: Secret) => Promise<T>,
): Promise<T> {
  if (credential.kind === 'password') return open({ pass: credential.password });
  const accessToken = await credential.tokens.current();
  try {
    return await open({ accessToken });
  } catch (error) {
    if (!(error instanceof ChannelError) || error.code !== AUTH_REFUSED) throw error;
    credential.tokens.discard(accessToken);
    return open({ accessToken: await credential.tokens.current() });
  }
}

/** Whether the server takes a log-in by token at all. */
export function takesTokens(client: ImapFlow): boolean {
  return ['AUTH=OAUTHBEARER', 'AUTH=XOAUTH2', 'AUTH=XOAUTH'].some((name) =>
    client.capabilities.has(name),
  );
}
