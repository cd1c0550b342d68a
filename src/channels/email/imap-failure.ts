// Translates what the IMAP library throws into our own errors: the account refused for good, or the
// server not reachable or not working just now.

import { BACKOFF, ChannelError } from '../../kernel/message/errors.ts';
import { headOf } from '../../lib/text/cut.ts';

export const AUTH_REFUSED = 'mail_auth_refused';

/** Response codes (RFC 5530) of a login that may work later. */
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

/** The server's own words where it gave any. */
function detailOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const words = 'responseText' in error ? error.responseText : undefined;
  return typeof words === 'string' && words !== ''
    ? headOf(words, MAX_DETAIL_CHARS)
    : error.message;
}

/** Silence or a wrong answer of the server: nothing was learned, so nothing may be assumed. */
export function serverFault(problem: string): ChannelError {
  return new ChannelError('mail_server', problem, { remedy: BACKOFF });
}

/** No mechanism for access tokens among what the server offers. */
export function tokenLoginMissing(): ChannelError {
  const problem = 'the IMAP server takes no log-in by OAuth2 (XOAUTH2 or OAUTHBEARER)';
  return new ChannelError(AUTH_REFUSED, problem, { remedy: BACKOFF });
}
