// Refuses to serve other machines without a token, and tokens that are none.

import { ConfigError } from '../core/errors.ts';
import { isLoopbackHost } from '../core/loopback.ts';

/** What an Authorization header can carry. */
const SENDABLE = /^[\x21-\x7e]+$/;

/** @throws ConfigError when the token is missing where it is needed, blank or cannot be sent. */
export function assertSafeBinding(host: string, token: string): void {
  if (SENDABLE.test(token)) return;
  if (token === '' && isLoopbackHost(host)) return;
  if (token.trim() === '') {
    const problem = `gateway.host ${host} with a blank token would let anyone in`;
    refuse(problem, 'Set gateway.token to a long random text, or gateway.host to 127.0.0.1.');
  }
  refuse(
    'gateway.token has spaces or characters that no browser can send',
    'Use letters, digits and punctuation.',
  );
}

function refuse(problem: string, remedy: string): never {
  throw new ConfigError(`${problem}. ${remedy}`, [{ path: 'gateway.token', problem, remedy }]);
}
