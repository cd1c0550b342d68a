// Why a call of a server's tool failed, by kind. What the server says of it is bounded here and marked
// as words of others by the toolbox.

import { ToolError, type ToolFailureKind } from '../../kernel/message/errors.ts';
import { systemCode } from '../../lib/files/files.ts';
import { SafeFetchError } from '../../lib/net/checked-address.ts';
import { headOf } from '../../lib/text/cut.ts';

/** JSON-RPC 2.0 section 5.1, and those the protocol's own library adds. */
export const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;
const CONNECTION_CLOSED = -32_000;
const REQUEST_TIMEOUT = -32_001;
/** Our own, in the range left to implementations: one answer was lost, the server is there. */
export const STREAM_ENDED = -32_050;
const MAX_CHARS = 2000;

export type CallFailure = {
  readonly error: ToolError;
  /** The connection is of no more use. */
  readonly isLost: boolean;
};

export function callFailure(error: unknown, server: string): CallFailure {
  if (error instanceof ToolError) return { error, isLost: false };
  const code = codeOf(error);
  const isLost = isConnectionLost(error, code);
  if (isLost || code === STREAM_ENDED) return { error: lost(server, error), isLost };
  const [kind, text] = toldBy(error, code, server);
  // A session that the server has forgotten is answered with 404 (transports, session management).
  return { error: new ToolError(kind, text, { cause: error }), isLost: code === 404 };
}

/** What names no reason broke off on the way. */
function isConnectionLost(error: unknown, code: number | undefined): boolean {
  if (code !== undefined) return code === CONNECTION_CLOSED;
  return !isTooLarge(error) && !isUnreadable(error);
}

const isTooLarge = (error: unknown) =>
  error instanceof SafeFetchError && error.reason === 'too_large';
const isUnreadable = (error: unknown) => error instanceof Error && 'issues' in error;

function toldBy(
  error: unknown,
  code: number | undefined,
  server: string,
): readonly [ToolFailureKind, string] {
  const words = headOf(error instanceof Error ? error.message : '', MAX_CHARS);
  if (isUnreadable(error)) return ['execution', `${server} answered in a form that cannot be read`];
  switch (code) {
    case METHOD_NOT_FOUND:
      return ['not_found', words];
    case INVALID_PARAMS:
      return ['invalid_arguments', words];
    case REQUEST_TIMEOUT:
      return ['timeout', `${server} did not answer in time`];
    case 401:
    case 403:
      return ['permission', `${server} refuses the login that is configured for it`];
    default:
      return ['execution', words];
  }
}

const lost = (server: string, cause: unknown) =>
  new ToolError(
    'execution',
    `the connection to ${server} was lost while this ran: whether it was done is not known`,
    { cause, isTransient: true },
  );

export function codeOf(error: unknown): number | undefined {
  const code = systemCode(error);
  return typeof code === 'number' ? code : undefined;
}
