// The IMAP library set up for one account, and what a log-in needs: the password, or an access token
// that is fetched anew once when the server refuses it.

import { type FetchMessageObject, type FetchQueryObject, ImapFlow } from 'imapflow';
import { ChannelError } from '../../kernel/message/errors.ts';
import { type MailAccount, type MailCredential, tlsOptionsOf } from './connection-settings.ts';
import { AUTH_REFUSED, serverFault } from './imap-failure.ts';
import { MAX_MEMORY_BYTES } from './mail-spool.ts';
import { MAX_MAIL_BYTES } from './mime-limits.ts';

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

// A mail fetched piece by piece (RFC 3501 section 6.4.5, partial fetch), so that none is ever in memory
// as a whole and every piece has a deadline of its own.

type Ask = (query: FetchQueryObject) => Promise<FetchMessageObject | undefined>;

/** The usual mail comes in one. */
const FIRST_PIECE_BYTES = MAX_MEMORY_BYTES;
const PIECE_BYTES = 512 * 1024;

/** Ends behind the limit: what goes on is too large, whatever the server said of its size. */
export async function* bodyPieces(ask: Ask): AsyncGenerator<Buffer, void, void> {
  let bytes = 0;
  for await (const piece of sectionPieces(wholeOf(ask))) {
    bytes += piece.length;
    yield piece;
    if (bytes > MAX_MAIL_BYTES) return;
  }
  if (bytes > 0) return;
  // Some servers say OK without a body; asked for it in two parts they have it.
  const { headers } = (await ask({ headers: true })) ?? {};
  if (headers === undefined) return;
  for await (const piece of sectionPieces(textOf(ask))) {
    if (bytes === 0) yield headers;
    bytes += piece.length;
    yield piece;
    if (bytes > MAX_MAIL_BYTES) return;
  }
}

type Section = (
  start: number,
  maxLength: number,
) => Promise<{ readonly piece: Buffer | undefined; readonly size: number }>;

const wholeOf =
  (ask: Ask): Section =>
  async (start, maxLength) => {
    const found = await ask({ size: true, source: { start, maxLength } });
    return { piece: found?.source, size: found?.size ?? Number.POSITIVE_INFINITY };
  };

const textOf =
  (ask: Ask): Section =>
  async (start, maxLength) => {
    const found = await ask({ bodyParts: [{ key: 'TEXT', start, maxLength }] });
    return { piece: found?.bodyParts?.get('text'), size: Number.POSITIVE_INFINITY };
  };

async function* sectionPieces(ask: Section): AsyncGenerator<Buffer, void, void> {
  for (let start = 0; ; ) {
    const wanted = start === 0 ? FIRST_PIECE_BYTES : PIECE_BYTES;
    const { piece, size } = await ask(start, wanted);
    if (piece === undefined && start > 0 && start < size) {
      throw serverFault('the server left out the end of a mail');
    }
    if (piece === undefined || piece.length === 0) return;
    yield piece;
    // Less than asked for is the end; more is everything, from a server that knows no partial fetch.
    if (piece.length !== wanted) return;
    start += wanted;
  }
}
