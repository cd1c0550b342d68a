// What makes a gateway token fit for use: needed beyond loopback, hard to guess, and something a
// browser can send in a header.

import { isLoopbackHost } from '../../lib/net/address-rules.ts';

/** What an Authorization header can carry (RFC 9110 section 5.5, without spaces). */
const SENDABLE = /^[\x21-\x7e]+$/;
const MIN_TOKEN_CHARS = 16;

export type TokenProblem = { readonly problem: string; readonly remedy: string };

/** Undefined where the host may be served with this token. */
export function tokenProblem(host: string, token: string): TokenProblem | undefined {
  const isLoopback = isLoopbackHost(host);
  if (token === '' && isLoopback) return undefined;
  if (token.trim() === '') {
    return {
      problem: `${host} with a blank token lets other machines reach the gateway`,
      remedy:
        'Set gateway.token or the environment variable NANOBOT_GATEWAY_TOKEN to a long random text, or gateway.host to 127.0.0.1.',
    };
  }
  if (!SENDABLE.test(token)) {
    return {
      problem: 'the token has spaces or characters that no browser can send',
      remedy: 'Use letters, digits and punctuation.',
    };
  }
  if (isLoopback || token.length >= MIN_TOKEN_CHARS) return undefined;
  return {
    problem: 'the token is short enough to be guessed',
    remedy: `Use ${MIN_TOKEN_CHARS} characters or more.`,
  };
}
