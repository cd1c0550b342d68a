// What the client is told when its request did not succeed: a code and a sentence. Unexpected errors
// go to the log; the client learns only that there was one.

import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { DoorClosedError, DoorNameError } from '../channels/door.ts';
import { BusFullError, NanobotError } from '../kernel/message/errors.ts';
import type { Logger } from '../lib/logger.ts';

const FULL_RETRY_SECS = 5;
const CLOSED_RETRY_SECS = 1;
/** Refused before the body was read: the rest of it is not waited for. */
const CLOSING_STATUSES: readonly number[] = [401, 403, 413, 415, 421, 429];

/** What our own HTTP library refuses, in our words. */
const LIBRARY_REFUSALS: Readonly<Record<string, string>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'The message is larger than 1 MB. Send a shorter one.',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'Send "Content-Type: application/json".',
};

export function failureReply(log: Logger) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    const refusal = asRefusal(error);
    if (refusal.status >= 500 && refusal.code === 'internal') {
      log.error('request failed', { route: request.routeOptions.url, error });
    }
    const { status, code, message, retryAfterSecs } = refusal;
    if (retryAfterSecs !== undefined) reply.header('retry-after', String(retryAfterSecs));
    if (CLOSING_STATUSES.includes(status)) reply.header('connection', 'close');
    if (status === 401) reply.header('www-authenticate', 'Bearer');
    return reply.code(status).send({ error: { code, message } });
  };
}

function asRefusal(error: FastifyError): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof BusFullError) {
    const message = 'Too many messages are waiting. Try again in a moment.';
    return new Refusal(503, error.code, message, { retryAfterSecs: FULL_RETRY_SECS });
  }
  if (error instanceof DoorClosedError) {
    return new Refusal(503, error.code, error.message, { retryAfterSecs: CLOSED_RETRY_SECS });
  }
  if (error instanceof DoorNameError) return new Refusal(400, error.code, error.message);
  const { statusCode = 500, code } = error;
  if (statusCode < 400 || statusCode >= 500) {
    return new Refusal(500, 'internal', 'Something went wrong here. The gateway’s log says what.');
  }
  const message = LIBRARY_REFUSALS[code] ?? 'The request cannot be read. Send JSON.';
  return new Refusal(statusCode, 'invalid_request', message);
}

// A request that is refused: status, a code for programs and a sentence that says what to do.

export class Refusal extends NanobotError {
  override readonly name = 'Refusal';
  readonly status: number;
  /** Seconds after which trying again makes sense. */
  readonly retryAfterSecs: number | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    options: { readonly retryAfterSecs?: number } = {},
  ) {
    super(code, message);
    this.status = status;
    this.retryAfterSecs = options.retryAfterSecs;
  }
}
