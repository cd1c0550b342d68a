// Refuses to serve other machines without a token, and tokens that are none.

import { ConfigError } from '../core/errors.ts';
import { tokenProblem } from '../core/gateway-token.ts';

/** @throws ConfigError when the token is missing where it is needed, blank or cannot be sent. */
export function assertSafeBinding(host: string, token: string): void {
  const found = tokenProblem(host, token);
  if (found === undefined) return;
  const { problem, remedy } = found;
  throw new ConfigError(`${problem}. ${remedy}`, [{ path: 'gateway.token', problem, remedy }]);
}
