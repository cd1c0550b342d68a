// Translates what the IMAP library throws into our own errors: the account refused for good, or the
// server not reachable or not working just now.

import { BACKOFF, ChannelError } from '../../core/errors.ts';

export const AUTH_REFUSED = 'mail_auth_refused';

/** Response codes (RFC 5530) of a login that may work later. */
const TEMPORARY_LOGIN = new Set(['UNAVAILABLE', 'INUSE', 'LIMIT', 'SERVERBUG', 'CONTACTADMIN']);

export function imapFailure(doing: string, error: unknown): ChannelError {
  if (error instanceof ChannelError) return error;
  const isRefused =
    error instanceof Error &&
    'authenticationFailed' in error &&
    error.authenticationFailed === true &&
    !TEMPORARY_LOGIN.has(String('serverResponseCode' in error ? error.serverResponseCode : ''));
  const code = isRefused ? AUTH_REFUSED : 'mail_server';
  const detail = error instanceof Error ? error.message : String(error);
  return new ChannelError(code, `${doing}: ${detail}`, { remedy: BACKOFF, cause: error });
}

/** Silence or a wrong answer of the server: nothing was learned, so nothing may be assumed. */
export function serverFault(problem: string): ChannelError {
  return new ChannelError('mail_server', problem, { remedy: BACKOFF });
}
