// CONTRACT of the HTTP routes that features contribute. The server authenticates each request
// before it reads the
// body, and loads the code of a group of routes with the first request for one of them.

import type { z } from 'zod';
import { t } from '../lib/texts.ts';
import { NanobotError } from './message/errors.ts';

/** The path may have parameters: `POST /api/channels/:name/restart`. */
export type RouteName = `${'GET' | 'POST'} /api/${string}`;

export type RouteRequest = {
  readonly params: unknown;
  readonly body: unknown;
  /** Path and query, as requested. */
  readonly address: string;
  /** It came with the gateway's token, not with a login of the page. */
  readonly hasToken: boolean;
};

export type RouteAnswer =
  /** `status`: default 200. */
  | { readonly status?: number; readonly body?: object }
  /** An HTML page of fixed text. */
  | { readonly status?: number; readonly page: string }
  /**
   * Sent as server-sent events. They must end with the signal: the reader left, or its access was
   * revoked.
   */
  | { events(signal: AbortSignal): AsyncIterable<object> };

/** @throws Refusal */
export type RouteHandler = (request: RouteRequest) => RouteAnswer | Promise<RouteAnswer>;

export type RouteHandlers<Name extends RouteName = RouteName> = Readonly<
  Record<Name, RouteHandler>
>;

export type Route = {
  readonly name: RouteName;
  /** Needs no token or login: what it is asked carries its own proof. */
  readonly isOpen: boolean;
  load(): Promise<RouteHandler>;
};

/** A refused request: a status, a code for programs and a sentence with the remedy. */
export class Refusal extends NanobotError {
  override readonly name = 'Refusal';
  readonly status: number;
  /** Seconds after which a retry is useful. */
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

/** Validates the input of a request. @throws Refusal (400) that names the problem. */
export function valid<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.join('.') ?? '';
  const what = issue?.message ?? t`is not valid`;
  throw new Refusal(400, 'invalid_request', `${where === '' ? t`The request` : where}: ${what}`);
}
