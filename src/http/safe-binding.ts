// Refuses to serve without a token, and with tokens that are none.

import { type TokenProblem, tokenProblem } from '../kernel/config/environment.ts';
import { ConfigError } from '../kernel/message/errors.ts';

const MISSING: TokenProblem = {
  problem: 'the home has no token for the gateway',
  remedy: 'Start it by "nanobot gateway", which makes one, or set gateway.token.',
};

/** @throws ConfigError when the token is blank, cannot be sent or is too short for other machines. */
export function assertSafeBinding(host: string, token: string): void {
  const found = tokenProblem(host, token) ?? (token === '' ? MISSING : undefined);
  if (found === undefined) return;
  const { problem, remedy } = found;
  throw new ConfigError(`${problem}. ${remedy}`, [{ path: 'gateway.token', problem, remedy }]);
}
